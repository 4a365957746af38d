"""``norm-align`` of raw text: tokenizers and subwords of fairseq's registries."""

from tests.integration.align.ways import PAPER
from tests.integration.demo import DEMO, written

RAW = (
    ["wir sind hier, im haus.", "das ist gut; und ihr?", "", "herr präsident, vielen dank!"],
    ["we are here, in the house.", "that's good; and you?", "x", "mr president, thank you!"],
)
TOKENS = (
    ["wir sind hier , im haus .", "das ist gut ; und ihr ?", "", "herr präsident , vielen dank !"],
    ["we are here , in the house .", "that 's good ; and you ?", "x", "mr president , thank you !"],
)


def test_raw_text_is_aligned_as_its_tokens(lines_run, tmp_path):
    codes, files = DEMO / "codes.bpe", (tmp_path / "tokens.de", tmp_path / "tokens.en")
    lines = codes.read_text(encoding="utf-8").splitlines()[1:]
    fast_codes = written(tmp_path / "bpecodes", [f"{line} {9999 - k}" for k, line in enumerate(lines)])

    def links(texts, *options):
        done = lines_run(*PAPER, *options, "--overwrite", sources=texts[0], targets=texts[1])
        assert done.status == 0, done.err
        return done.lines

    expected = links(TOKENS, "--bpe-codes", codes)
    moses = ("--tokenizer", "moses", "--model-option", "moses_no_escape=true", "--tokens-out", *files)
    assert all(expected[line] for line in (0, 1, 3))
    assert links(RAW, "--bpe-codes", codes, *moses) == expected
    assert tuple(file.read_text(encoding="utf-8").splitlines() for file in files) == TOKENS
    assert links(RAW, "--bpe-codes", fast_codes, *moses) == expected
    assert links(TOKENS, "--bpe", "subword_nmt", "--tokenizer", "space", "--bpe-codes", codes) == expected
