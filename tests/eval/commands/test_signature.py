"""``align-eval signature`` of records and a profile; ``align-eval merge``."""

import json

from alignment_eval.files import fields_of
from alignment_eval.reading import json_hash
from tests.eval.shards import SIGNATURE, write
from tests.facts import says


def printed(call, path):
    status, out, err = call("signature", path)
    assert (status, err) == (0, "")
    return dict(line.split("\t") for line in out.splitlines())


def test_records(call, tmp_path, make_records, make_sentence):
    directory = make_records(tmp_path / "run", [make_sentence(0)], signature={"model": "m1", "shards": 2})
    assert printed(call, directory) == {"run": json_hash({"model": "m1", "shards": 2}), "model": "m1", "shards": "2"}


def test_a_profile_and_a_file_of_links(call, tmp_path):
    signed = "pairs:7|profile:agreement|version:align-eval-1"
    (tmp_path / "p.align.json").write_text(json.dumps({"signature": signed}))
    assert printed(call, tmp_path / "p.align.json") == fields_of(signed)
    (tmp_path / "links.signature.json").write_text(json.dumps(fields_of(signed)))
    (tmp_path / "links").write_text("0-0\n")
    assert printed(call, tmp_path / "links") == fields_of(signed)


def test_command(tmp_path, align_eval):
    directory = write(tmp_path / "run", [[{0: "0-0 1-1", 3: "2-0"}, {2: ""}], [{1: ""}]], 4, skipped=[2, 1])
    out = tmp_path / "out.pharaoh"
    done = align_eval("merge", directory, "-o", out)
    assert (done.returncode, done.stdout) == (0, "")
    assert out.read_text() == "0-0 1-1\n\n\n2-0\n"
    warning, signed = done.stderr.splitlines()
    assert says(warning, "warning: 2 of 4 sentences … 2 skipped")
    assert signed.startswith(
        f"run:{json_hash(SIGNATURE)}|sentences:4|kind:attn_n|layer:1|rule:kobayashi2020|version:align-eval-"
    )
    assert align_eval("merge", directory).stdout == out.read_text()
