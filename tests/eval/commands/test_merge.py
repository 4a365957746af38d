from alignment_eval.reading import json_hash
from tests.eval.parts.shards import SIGNATURE, write


def test_command(tmp_path, align_eval):
    directory = write(tmp_path / "run", [[{0: "0-0 1-1", 3: "2-0"}, {2: ""}], [{1: ""}]], 4, skipped=[2, 1])
    out = tmp_path / "out.pharaoh"
    done = align_eval("merge", directory, "-o", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert out.read_text() == "0-0 1-1\n\n\n2-0\n"
    warning, signed = done.stderr.splitlines()
    assert warning == "warning: 2 of 4 sentences cannot be aligned, without links (2 skipped)"
    assert signed.startswith(
        f"run:{json_hash(SIGNATURE)}|sentences:4|kind:attn_n|layer:1|rule:kobayashi2020|version:align-eval-"
    )
    assert align_eval("merge", directory).stdout == out.read_text()
