"""Every command that writes a file or directory: where it may not, it says so in one line and touches nothing."""

import pytest

from tests.eval.shards import write
from tests.facts import content, says

LOG = '{"epoch": 1, "valid_loss": "2.0", "valid_aer": "0.5", "valid_num_updates": "100"}'
GOLD = ("--gold", "gold", "--gold-base", 0)
RULE = ("--kind", "attn_n", "--heads", 1, "--setting", "awo", "--rule", "shift-att")
FEW = ("--kinds", "attn_w", "--settings", "awo", "--rules", "shift-att")
COMMANDS = {
    "convert": ("convert", "gold", "--to", "talp", "-o"),
    "curve": ("curve", "log", "--metrics", "aer", "-o"),
    "extract": ("extract", "run", *RULE, "-o"),
    "filter": ("filter", "text", "--scores", "scores", "--keep", 0.5, "-o"),
    "lexicon": ("lexicon", "gold", "--source", "text", "--target", "text", "-o"),
    "merge": ("merge", "parts", "-o"),
    "plot": ("plot", "run", "--sentence", 0, "--heads", 1, "-o"),
    "report": ("report", "run", *GOLD, "--kinds", "attn_w", "-o"),
    "project": ("project", "--labels", "labels", "--links", "gold", "--target-text", "text", "-o"),
    "sweep": ("sweep", "run", *GOLD, *FEW, "-o"),
    "symmetrize": ("symmetrize", "gold", "gold", "--method", "union", "-o"),
}
#: Commands whose output is known by its ending.
PICTURES = ("curve", "plot")


@pytest.fixture
def directory(tmp_path, make_sentence, make_records, monkeypatch):
    """The working directory, with what the commands read."""
    monkeypatch.chdir(tmp_path)
    make_records(tmp_path / "run", [make_sentence(0), make_sentence(1)])
    write(tmp_path / "parts", [[{0: "0-0"}]], 1)
    (tmp_path / "gold").write_text("0-0\n1-1\n")
    (tmp_path / "log").write_text(LOG)
    (tmp_path / "text").write_text("a b\nc d\n")
    (tmp_path / "scores").write_text("unsupported\tstatus\n0.1\tok\n0.2\tok\n")
    (tmp_path / "labels").write_text("a\tB-X\nb\tO\n\nc\tO\nd\tO\n")
    return tmp_path


def refuse(call, directory, name, place, *options):
    before = content(directory)
    status, out, messages = call(*COMMANDS[name], place, *options)
    assert status in (1, 2), messages
    assert out == ""
    lines = [line for line in messages.splitlines() if ": warning: " not in line]
    assert len(lines) == 1, messages
    assert content(directory) == before
    return lines[0]


@pytest.mark.parametrize("name", COMMANDS)
def test_what_exists_is_not_replaced_unasked(call, directory, name):
    place = directory / ("there.png" if name in PICTURES else "there")
    if name == "sweep":
        place.mkdir()
        (place / "sweep.json").write_text("mine")
    else:
        place.write_text("mine")
    assert says(refuse(call, directory, name, place), f"{place} … exists … --overwrite")
    assert call(*COMMANDS[name], place, "--overwrite")[0] == 0
    assert content(directory)[f"{place.name}/sweep.json" if name == "sweep" else place.name] != b"mine"


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in ("merge", "sweep")])
def test_no_output_is_an_input(call, directory, name):
    inputs = [file for file in ("gold", "log", "text", "scores", "labels", "run") if file in COMMANDS[name]]
    (directory / "link").symlink_to(inputs[0])
    for place in (*inputs, "link"):
        assert "of this command" in refuse(call, directory, name, place, "--overwrite")
