"""``align-eval signature``: of records, a lexical table, a profile, and of what has none."""

import json

import pytest

from alignment_eval.reading import json_hash
from alignment_eval.signature import fields_of
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


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("none", None, "none: cannot be read"),
        ("links", b"0-0\n", "links: no signature in it, and no 'links.signature.json' beside it"),
        ("broken.parquet", b"PAR1xx", "broken.parquet: damaged"),
    ],
)
def test_what_has_none(call, tmp_path, name, content, text):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    status, out, err = call("signature", tmp_path / name)
    assert (status, out) == (1, "")
    assert says(err, text)
