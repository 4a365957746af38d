import json
from pathlib import Path

import pytest

from tests.facts import says

#: unsupported, omitted and status of pairs
SCORES = [
    (0.5, 0.0, "ok"),
    (None, None, "empty"),
    (0.25, 1.0, "ok"),
    (0.5, 0.5, "ok"),
    (1e-06, 0.75, "ok"),
    (None, None, "longer than 9 tokens"),
    (1.0, 0.25, "ok"),
]
NAMES = ("unsupported", "omitted", "status")
ROWS = [["" if value is None else str(value) for value in row] for row in SCORES]
FILES = {
    "scores.tsv": "".join("\t".join(row) + "\n" for row in (NAMES, *ROWS)),
    "scores.jsonl": "".join(json.dumps({"source": "a", **dict(zip(NAMES, row))}) + "\n" for row in SCORES),
    **{f"text.{name}": "".join(f"{name}{k}\r\u2028\n" for k in range(7)) for name in "ab"},
}
pytestmark = pytest.mark.usefixtures("files")


def kept():
    texts = [Path(f"out.{name}").read_bytes().decode() for name in "ab"]
    assert texts[0].replace("a", "b") == texts[1]
    return "".join(line[1] for line in texts[0].split("\n")[:-1])


@pytest.mark.parametrize(
    ("options", "lines", "said"),
    [
        (("--keep", 0.3), "24", ("2 of 7", "3 with unsupported from 0.5 on", "1 empty", "1 longer than 9 tokens")),
        (("--keep", 1), "02346", ("5 of 7 lines kept; left out: 1 empty, 1 longer",)),
        (("--keep", 0), "", ("0 of 7", "5 with unsupported from 1e-06 on")),
        (("--max-unsupported", 0.5), "0234", ("4 of 7", "1 with unsupported from 1 on")),
        (("--max-omitted", 0.5), "036", ("3 of 7", "2 with omitted from 0.75 on")),
        (("--max-unsupported", 0.5, "--max-omitted", 0.5), "03", ("1 with unsupported", "2 with omitted")),
    ],
)
@pytest.mark.parametrize("scores", ["scores.tsv", "scores.jsonl"])
def test_lines_that_are_kept(call, scores, options, lines, said):
    status, out, messages = call("filter", "text.a", "text.b", "--scores", scores, "-o", "out.a", "out.b", *options)
    assert (status, out, kept()) == (0, "", lines)
    assert all(part in messages for part in said), messages


@pytest.mark.parametrize("lines", [1, 2])
def test_scores_without_a_header(call, lines):
    Path("bare.tsv").write_text("0.5\t0.5\tok\n" * lines)
    Path("text").write_text("a\n" * lines)
    status, _, messages = call("filter", "text", "--scores", "bare.tsv", "--keep", 1, "-o", "out")
    assert status == 1
    assert says(messages, "bare.tsv:1 … unsupported … --scores")
