"""``norm-align`` of raw text: tokenizers and subwords of fairseq's registries."""

from pathlib import Path

import pytest

from fairseq_norm_plugin.align import cli as align
from tests.integration.align.ways import PAPER

DEMO = Path(__file__).resolve().parents[3] / "data" / "demo"
RAW = (
    ["wir sind hier, im haus.", "das ist gut; und ihr?", "", "herr präsident, vielen dank!"],
    ["we are here, in the house.", "that's good; and you?", "x", "mr president, thank you!"],
)
TOKENS = (
    ["wir sind hier , im haus .", "das ist gut ; und ihr ?", "", "herr präsident , vielen dank !"],
    ["we are here , in the house .", "that 's good ; and you ?", "x", "mr president , thank you !"],
)


@pytest.fixture
def run(tmp_path, capsys):
    """Align the lines of two texts with a model of the demo; the links of each line."""

    def start(texts, *options):
        words = ["--path", DEMO / "checkpoint.pt", "--data", DEMO, "-s", "de", "-t", "en", "--cpu", *options, *PAPER]
        for name, lines in zip(("source", "target"), texts):
            (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            words += [f"--{name}-text", tmp_path / name]
        out = tmp_path / "out"
        assert align.main([str(word) for word in (*words, "-o", out, "--overwrite")]) == 0, capsys.readouterr().err
        return out.read_text().splitlines()

    return start


@pytest.fixture
def fast_codes(tmp_path):
    """The demo's codes as fastBPE writes them."""
    lines = (DEMO / "codes.bpe").read_text(encoding="utf-8").splitlines()[1:]
    (tmp_path / "bpecodes").write_text("".join(f"{line} {9999 - k}\n" for k, line in enumerate(lines)), "utf-8")
    return tmp_path / "bpecodes"


def test_raw_text_is_aligned_as_its_tokens(run, fast_codes, tmp_path):
    files = tmp_path / "tokens.de", tmp_path / "tokens.en"
    expected = run(TOKENS, "--bpe-codes", DEMO / "codes.bpe")
    moses = ("--tokenizer", "moses", "--model-option", "moses_no_escape=true", "--tokens-out", *files)
    assert all(expected[line] for line in (0, 1, 3))
    assert run(RAW, "--bpe-codes", DEMO / "codes.bpe", *moses) == expected
    assert tuple(file.read_text(encoding="utf-8").splitlines() for file in files) == TOKENS
    assert run(RAW, "--bpe-codes", fast_codes, *moses) == expected
    assert run(RAW, "--bpe", "fastbpe", "--bpe-codes", fast_codes, *moses) == expected
    assert run(TOKENS, "--bpe", "subword_nmt", "--tokenizer", "space", "--bpe-codes", DEMO / "codes.bpe") == expected
