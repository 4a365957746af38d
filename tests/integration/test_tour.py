"""The notebook docs/tour.ipynb, executed; what its cells print is what the notebook shows."""

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (Python 3.11 or later)")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (Python 3.11 or later)")
ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "docs/tour.ipynb"


def shown(cell):
    """The text and the media types of each output; the bytes of HTML and of pictures may differ."""
    found: list[tuple[str, list[str]]] = []
    for out in cell.outputs:
        text, media = out.get("text") or out.data["text/plain"], sorted(out.get("data", ()))
        if not media and found and not found[-1][1]:  # what is printed comes in one part or in several
            text = found.pop()[0] + text
        found.append((text, media))
    return found


def test_tour(tmp_path, monkeypatch, pytestconfig):
    (tmp_path / "data").symlink_to(ROOT / "data")
    (tmp_path / "docs").mkdir()
    for name, value in (("PYTHONPATH", ROOT), ("IPYTHONDIR", tmp_path), ("JUPYTER_RUNTIME_DIR", tmp_path / "runtime")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a notebook has its own
    tour = nbformat.read(TOUR, as_version=4)
    expected = [shown(cell) for cell in tour.cells if cell.cell_type == "code"]
    where = {"metadata": {"path": str(tmp_path / "docs")}}
    nbclient.NotebookClient(tour, timeout=300, startup_timeout=300, resources=where).execute()
    code = [cell for cell in tour.cells if cell.cell_type == "code"]
    for cell in code:
        cell.outputs = [out for out in cell.outputs if out.get("name") != "stderr"]  # logs
        cell.metadata.clear()  # times
    if pytestconfig.getoption("--update-examples"):
        nbformat.write(tour, TOUR)
    else:
        assert [shown(cell) for cell in code] == expected
