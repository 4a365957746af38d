from pathlib import Path

import pytest

from alignment_eval.commands import main
from alignment_eval.links.files import ReadOptions, read_gold, read_hypothesis
from alignment_eval.scoring.aer import score
from tests.facts import says

FILES = {"fwd": "0-0 1-1 1-2 5-5\n\n0-1\n", "rev": "0-0 2-1 4-5\n1-1\n0-1\n"}
pytestmark = pytest.mark.usefixtures("files")


def test_end_to_end(align_eval):
    done = align_eval("symmetrize", "fwd", "rev", "--method", "grow-diag-final", "--output", "out")
    assert (done.returncode, done.stdout) == (0, "")
    assert Path("out").read_text() == "0-0 1-1 1-2 2-1 4-5 5-5\n1-1\n0-1\n"
    fields = dict(field.split(":", 1) for field in done.stderr.strip().split("|"))
    assert fields.pop("version").startswith("align-eval-")
    assert fields.pop("forward") != fields.pop("reverse")
    assert fields == {
        "symmetrized": "grow-diag-final",
        "variant": "moses",
        **{"forward_format": "pharaoh", "forward_base": "0", "forward_swap": "no"},
        **{"reverse_format": "pharaoh", "reverse_base": "0", "reverse_swap": "no"},
    }


def test_a_direction_that_looks_swapped_is_a_warning(call):
    Path("fwd").write_text("0-1 1-2 2-3\n")
    Path("rev").write_text("1-0 2-1 3-2\n")
    for options, file, advice in (((), "rev", "give"), (("--reverse-swap",), "fwd", "omit")):
        status, _, err = call("symmetrize", "fwd", file, "--method", "union", *options)
        assert status == 0
        said = "0 of its 3 links are in fwd, but 3 with source and target exchanged … swapped; if so"
        assert says(err, f"warning: {file}: {said}, {advice} --reverse-swap")


METHODS = {
    "intersection": ("intersection",),
    "union": ("union",),
    "grow-diagonal": ("grow-diag", "--variant", "lilt"),
    "grow-diagonal-final": ("grow-diag-final", "--variant", "lilt"),
}


@pytest.mark.shared
@pytest.mark.parametrize("stored", METHODS)
@pytest.mark.parametrize("aligner", ["giza", "fastalign"])
def test_stored_files_link_for_link_and_published_figures(shared, published, aligner, stored):
    folder = shared / "data/baselines" / aligner
    files = [str(folder / f"test.deen.{name}talp") for name in ("", "reverse.")]
    assert main(["symmetrize", *files, "--reverse-swap", "--output", "out", "--method", *METHODS[stored]]) == 0
    ours, theirs = (list(read_hypothesis(path).each_links()) for path in ("out", folder / f"test.deen.{stored}.talp"))
    assert ours == theirs
    gold = read_gold(shared / "data/gold/vilar508/alignment.talp", ReadOptions(base="1"))
    figure = published(folder)[f"test.deen.{stored}.talp"][0]
    assert abs(100 * score(ours, gold).aer - figure) <= 0.1 + 1e-9
