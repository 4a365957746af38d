"""BPE codes: read in one place, and what is no codes file is an error of the caller's."""

from __future__ import annotations

from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.text.codes import read_bpe

DEMO = Path(__file__).resolve().parents[3] / "data" / "demo"
#: What is no codes file, and what the message names.
BAD = {
    "three pieces": (b"#version: 0.2\nb a</w>\nthree pieces here\n", "line 3 .*three pieces here"),
    "no version": (b"#version: x\nb a</w>\n", "x"),
    "no pieces": (b"", "invalid line 1"),
    "control characters": (b"#version: 0.2\nb\x1b[2J a x\n", r"b\\x1b"),
    "a later version": (b"#version: 0.3\nb a</w>\n", "1: version '0.3'"),
    "no UTF-8": (b"\xff \xff\n", "utf-8"),
    "a dictionary": (b", 204\n. 171\nthe 130\n", "a dictionary .*, not BPE"),
    "fastBPE": (b"b a</w> 3\nb a\n", "2: 'b a': expected two subwords and a count"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_does_not_end_the_interpreter(tmp_path, case, capfd):
    content, named = BAD[case]
    (tmp_path / "codes").write_bytes(content)
    with pytest.raises(InputError, match=rf"codes:.*{named}") as error:
        read_bpe(tmp_path / "codes")
    assert str(error.value).isprintable()
    assert "Error: invalid line" not in capfd.readouterr().err


def fast_codes(tmp_path):
    """The demo's codes with counts, as fastBPE writes them."""
    lines = (DEMO / "codes.bpe").read_text(encoding="utf-8").splitlines()[1:]
    (tmp_path / "bpecodes").write_text("".join(f"{line} {99999 - k}\n" for k, line in enumerate(lines)), "utf-8")
    return tmp_path / "bpecodes"


def test_fastbpe_codes_are_the_same_merges_with_counts(tmp_path):
    words = (DEMO / "demo.de").read_text(encoding="utf-8").split()
    mine = read_bpe(fast_codes(tmp_path), "fastbpe")
    assert mine.segment_tokens(words) == read_bpe(DEMO / "codes.bpe").segment_tokens(words)


def test_fastbpe_codes_are_applied_as_the_package_does(tmp_path):
    fast = pytest.importorskip("fastBPE", reason="fastBPE is not installed (it needs a C++ compiler)")
    lines = [*(DEMO / "demo.de").read_text(encoding="utf-8").splitlines(), "élan 我们 x@@ <unk> aaaa aaaaa ΑΒ"]
    codes = fast_codes(tmp_path)
    mine, theirs = read_bpe(codes), fast.fastBPE(str(codes))
    assert [" ".join(mine.segment_tokens(line.split())) for line in lines] == theirs.apply(lines)
