"""``norm-align``: text as it comes, raw or in subwords, and bad input."""

from tests.demo import in_pieces, written
from tests.facts import says
from tests.integration.align.conftest import PAPER
from tests.integration.conftest import SYLLABLES


def codes_of(syllables, *more):
    """Codes that make each syllable, inside a word and at its end, and what ``more`` lines make."""
    return "\n".join(["#version: 0.2", *(f"{a} {b}{end}" for a, b in syllables for end in ("", "</w>")), *more, ""])


def changed(files, tmp_path, changes):
    """The text with some of its lines replaced: {line, from 0: (source, target)}."""
    lines = [list(pair) for pair in zip(*(file.read_text().splitlines() for file in files))]
    for number, pair in changes.items():
        lines[number] = pair
    return [written(tmp_path / f"changed.{lang}", side) for lang, side in zip(("xx", "yy"), zip(*lines))]


def test_empty_and_long_sentences_have_blank_lines(run, extracted, files, tmp_path):
    long = " ".join(["ba"] * 1024)
    changes = {1: ("", "ab"), 3: ("ba", " "), 5: (long, "ab"), 6: ("ba", long), 11: ("", "")}
    done = run(*PAPER, "--window", 3, text=changed(files, tmp_path, changes))
    expected = extracted(*PAPER)
    assert done.lines == ["" if number in changes else line for number, line in enumerate(expected)]
    size, reasons = len(expected), "3 empty (the first is line 2) … 2 longer than 1024 tokens (the first is line 6)"
    assert says(done.err, f"warning: 5 of {size} … {reasons}")


def test_unknown_subwords_are_counted_in_their_words(run, files, tmp_path):
    """The binarised text would not tell that an unknown piece is only a piece; and <pad> is a word here."""
    done = run(text=changed(files, tmp_path, {0: ("zz@@ ba </s> <pad> qq@@ qq@@ ki", "<pad> ik zz@@ zz ab </s>")}))
    assert done.status == 0, done.err
    links = [tuple(map(int, link.split("-"))) for link in done.lines[0].split()]
    assert links
    assert all(i <= 3 and j <= 4 for i, j in links)


def test_subword_nmt_codes_are_applied(run, files, tmp_path, backward):
    codes, words, pieces = [], [], []
    reverse = codes_of([syllable[::-1] for syllable in SYLLABLES])
    for file, content in zip(files, (codes_of(SYLLABLES, "ki ba</w>"), reverse)):
        codes.append(tmp_path / f"codes{file.suffix}")
        codes[-1].write_text(content)
        plain = file.read_text().replace("@@ ", "").splitlines()
        words.append(written(tmp_path / f"words{file.suffix}", plain))
        pieces.append(written(tmp_path / f"pieces{file.suffix}", in_pieces(plain, codes[-1])))
    both = ("--reverse-path", backward, "--join", "union")
    for options in ((), both):
        expected = run(*options, "--overwrite", text=pieces).lines
        assert run(*options, "--overwrite", text=words, bpe=("--bpe-codes", *codes)).lines == expected
    for more, given in (((), codes[:1]), ((*both, "--model-option", f"reverse_bpe_codes={codes[0]}"), codes)):
        done = run("--overwrite", *more, text=words, bpe=("--bpe-codes", *given))
        assert (done.status, "codes.xx: no line of the codes makes" in done.err) == (1, True)
