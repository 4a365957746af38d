"""The notebook docs/tour.ipynb, executed; what its cells print is what the notebook shows."""

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed (Python 3.11 or later)")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel", reason="ipykernel is not installed (Python 3.11 or later)")
ROOT = Path(__file__).resolve().parents[2]
TOUR = ROOT / "docs/tour.ipynb"


def shown(cell):
    """What is kept of a cell's outputs: text, without tables, pictures, logs and the numbers of cells."""
    kept = []
    for output in cell.outputs:
        if output.get("name") == "stdout":
            kept.append(output)
        elif "text/plain" in output.get("data", {}) and "image/png" not in output.data:
            data = {"text/plain": output.data["text/plain"]}
            kept.append(nbformat.from_dict({**output, "data": data, "execution_count": None}))
    return kept


def test_tour(tmp_path, monkeypatch, pytestconfig):
    (tmp_path / "data").symlink_to(ROOT / "data")
    (tmp_path / "docs").mkdir()
    for name, value in (("PYTHONPATH", ROOT), ("IPYTHONDIR", tmp_path), ("JUPYTER_RUNTIME_DIR", tmp_path / "runtime")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("MPLBACKEND", raising=False)  # a notebook has its own
    tour = nbformat.read(TOUR, as_version=4)
    expected = [cell.outputs for cell in tour.cells if cell.cell_type == "code"]
    where = {"metadata": {"path": str(tmp_path / "docs")}}
    nbclient.NotebookClient(tour, timeout=300, startup_timeout=300, resources=where).execute()
    code = [cell for cell in tour.cells if cell.cell_type == "code"]
    assert any("image/png" in output.get("data", {}) for output in code[-1].outputs)
    for cell in code:
        cell.outputs, cell.execution_count = shown(cell), None
        cell.metadata.clear()  # times
    if pytestconfig.getoption("--update-examples"):
        nbformat.write(tour, TOUR)
    else:
        assert [cell.outputs for cell in code] == expected
