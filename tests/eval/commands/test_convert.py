import pytest

TALP = "1-1 2p2\n\n2-1 3-4\n"
FILES = {
    "talp": TALP,
    "sure": "0-0\n\n1-0 2-3\n",
    "scored": "1-0:0.25 0-0:1e-2\n\n0-2:-3.5\n",
    "trailing": "0-0\n\n\n",
    "blank": "\n\n",
    "naacl": "1 1 1 S\n1 2 2 P 0.5\n3 1 1\n",
    "confident": "1 1 1 S\n1 2 2 P 0.5\n2 1 1\n",
    "generate": "A-1\t1-1\nS-0\tx\nA-0\t0-0\nA-0\t0-1\n",
    "words": "0-0 1p1\n\n2-0\n",
    "subwords": "0-0:0.25 1-0:0.5 1-2:0.25\n\n2p1:1\n",
    "bpe.s": "a@@ b c\nd\ne f g@@ h\n",
    "bpe.t": "x y@@ z\nv\nw@@ w\n",
    "bpe.1": "x\n",
    "pieces": "▁x ▁y z\n▁v\n▁w w\n",
}
WORDS = ("subwords", "--to", "scored", "--from-subwords")
SUBWORDS = ("words", "--to", "talp", "--subwords")

pytestmark = pytest.mark.usefixtures("files")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("talp", "--from-base", "1", "--to", "talp", "--to-base", "1"), TALP),
        (("talp", "--from-base", "1", "--from-swap", "--to", "talp", "--possible", "keep"), "0-0 1p1\n\n0-1 3-2\n"),
        (("talp", "--from-base", "1", "--to", "pharaoh", "--possible", "drop"), "0-0\n\n1-0 2-3\n"),
        (("talp", "--from-base", "1", "--to", "pharaoh", "--possible", "keep"), "0-0 1-1\n\n1-0 2-3\n"),
        (("sure", "--to", "naacl", "--to-base", "0"), "1 0 0 S\n3 1 0 S\n3 2 3 S\n"),
        (("confident", "--to", "scored"), "0-0:1.0 1p1:0.5\n0-0:1.0\n"),
        (("scored", "--to", "naacl"), "1 1 1 S 0.01\n1 2 1 S 0.25\n3 1 3 S -3.5\n"),
        (("scored", "--to", "scored", "--min-confidence", "0.01"), "0-0:0.01 1-0:0.25\n\n\n"),
        ((*SUBWORDS, "auto", "--source", "bpe.s", "--target", "bpe.t"), "0-0 1-0 2p1 2p2\n\n2-0 2-1 3-0 3-1\n"),
        ((*WORDS, "auto", "--source", "bpe.s", "--target", "bpe.t"), "0-0:0.5 0-1:0.25\n\n2p0:1.0\n"),
        ((*SUBWORDS, "none", "--source", "bpe.s", "--target", "bpe.t"), "0-0 1p1\n\n2-0\n"),
        # each text has its own mark; one without marks is in words
        ((*WORDS, "auto", "--source", "bpe.s", "--target", "pieces"), "0-0:0.5 0-1:0.25\n\n2p0:1.0\n"),
    ],
)
def test_without_loss(call, arguments, expected):
    assert call("convert", *arguments) == (0, expected, "")


@pytest.mark.parametrize(
    ("arguments", "expected", "message"),
    [
        (("scored", "--to", "pharaoh"), "0-0 1-0\n\n0-2\n", "scored: the scores of its links are dropped: pharaoh "),
        (("naacl", "--to", "naacl"), "1 1 1 S 1.0\n1 2 2 P 0.5\n3 1 1 S 1.0\n", "1 of 3 sentences have no line"),
        (("trailing", "--to", "naacl"), "1 1 1 S\n", "trailing: its last 2 sentences have no links"),
        (("generate", "--to", "pharaoh"), "0-0\n1-1\n", "generate: only the first A- line of each sentence is taken"),
    ],
)
def test_losses_are_told(call, arguments, expected, message):
    status, out, err = call("convert", *arguments)
    assert (status, out) == (0, expected)
    assert f"warning: {message}" in err or f"warning: naacl: {message}" in err
