from pathlib import Path

import pytest

COMMAND = ("filter", "text.a", "text.b", "--scores", "scores", "-o", "out.a", "out.b")
SCORES = ["0.5\tok", "\tempty", "0.25\tok", "0.5\tok", "1e-06\tok", "\tlonger than 9 tokens", "1.0\tok"]
FILES = {
    "scores": "\n".join(("unsupported\tstatus", *SCORES, "")),
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
    ],
)
def test_lines_that_are_kept(call, options, lines, said):
    status, out, messages = call(*COMMAND, *options)
    assert (status, out, kept()) == (0, "", lines)
    assert all(part in messages for part in said), messages
