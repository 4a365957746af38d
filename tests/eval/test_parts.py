"""The parts of a run: what a directory must hold to count as finished, how parts of links are merged, signatures."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval import parts
from alignment_eval.alignment import Alignment
from alignment_eval.errors import InputError
from alignment_eval.files import fields_of
from alignment_eval.parts import Names, PartsWriter, RunInfo, finished_run, parts_in, read_alignments
from alignment_eval.reading import json_hash
from tests.eval.shards import FORM, SIGNATURE, linked, write
from tests.facts import facts, says

FIRST = "part-00000-of-00002-00000.parquet"
SECOND = "part-00001-of-00002-00000.parquet"


@pytest.fixture
def run(tmp_path):
    """Two shards of a part each."""
    return write(tmp_path / "run", [[{0: "0-0", 2: ""}], [{1: "", 3: "1-0"}]], 4)


def test_round_trip(run):
    parts = finished_run(run, "alignments")
    assert [part.path.name for part in parts] == [FIRST, SECOND]
    assert parts[1].info == RunInfo("alignments", SIGNATURE, 4, 1, 2)
    assert [part.ids().tolist() for part in parts] == [[0, 2], [1, 3]]
    assert parts_in(run / "none", "alignments") == []


@pytest.mark.parametrize(
    ("shards", "size", "text"),
    [
        ([[{0: "", 1: ""}], [{1: "", 2: ""}]], 4, f"{SECOND}: … repeats"),
        ([[{0: "", 1: ""}], [{3: ""}]], 4, "sentences 2 are missing: … resume it"),
        ([[{0: ""}], []], 9, "sentences 1, 2, 3, 4, 5, … (8 in total) are missing (shards without any part: 1 of 2)"),
        ([[{0: "", 1: ""}], [{2: "", 4: ""}]], 4, f"{SECOND}: ids 4 are unknown … 0 to 3"),
    ],
)
def test_every_sentence_must_be_there_once(tmp_path, shards, size, text):
    with pytest.raises(InputError, match=facts(text)):
        finished_run(write(tmp_path, shards, size), "alignments")


def test_parts_of_another_run(run, tmp_path):
    other = {"extraction": {**SIGNATURE["extraction"], "layer": 2}, "model": "b"}
    write(tmp_path / "other", [[], [{1: "", 3: ""}]], 4, signature=other)
    (tmp_path / "other" / SECOND).replace(run / SECOND)
    with pytest.raises(InputError, match=facts(f"{SECOND}: … extraction.layer, model")):
        finished_run(run, "alignments")


def test_parts_of_another_content(run):
    with pytest.raises(InputError, match=facts(f"{FIRST}: … 'alignments' … a directory of records")):
        finished_run(run, "records")


def test_nothing_there(tmp_path):
    (tmp_path / "file").write_text("text")
    (tmp_path / "empty").mkdir()
    for name in ("nothing", "file", "empty"):
        with pytest.raises(InputError, match=facts(f"{name}: … a directory of alignments")):
            finished_run(tmp_path / name, "alignments")


@pytest.mark.parametrize("change", [{"shard": 2}, {"schema_version": 2}, None])
def test_manifests_of_another_form(run, change):
    table = pq.read_table(run / FIRST)
    content = json.loads(table.schema.metadata[b"alignment_eval"])
    metadata = {} if change is None else {b"alignment_eval": json.dumps({**content, **change}).encode()}
    pq.write_table(table.replace_schema_metadata(metadata), run / FIRST)
    with pytest.raises(InputError, match=f"{FIRST}: "):
        parts_in(run, "alignments")


@given(places=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=30))
@settings(max_examples=30, deadline=None)
def test_any_distribution_gives_the_lines_in_order(tmp_path_factory, places):
    lines = [" ".join(f"{i}-{j}" for j in range(i % 4 if i % 3 else 0)) for i in range(len(places))]
    shards = [[{} for _ in range(4)] for _ in range(3)]
    for id_, (shard, part) in reversed(list(enumerate(places))):
        shards[shard][part][id_] = lines[id_]
    info, (rows,) = read_alignments(write(tmp_path_factory.mktemp("run"), shards, len(lines), range(0, 99, 3)))
    assert (info.size, rows["links"].to_pylist()) == (len(lines), [list(map(list, linked(line))) for line in lines])
    assert rows["status"].to_pylist().count("skipped") == len(lines[::3])


def test_a_sentence_that_was_skipped_has_no_links(tmp_path):
    with pytest.raises(InputError, match=facts("00000.parquet: … has links, but its status")):
        list(read_alignments(write(tmp_path, [[{0: "0-0", 1: "0-0"}]], 2, skipped=[1]))[1])


@pytest.mark.parametrize("link", [[0], [0, 1, 2], [-1, 0], [None, 0], None])
def test_links_of_another_form(tmp_path, link):
    (part,) = write(tmp_path, [[{0: "0-0"}]], 1).iterdir()
    table = pq.read_table(part)
    links = pa.array([[link]], table.schema.field("links").type)
    pq.write_table(table.set_column(table.column_names.index("links"), "links", links), part)
    with pytest.raises(InputError, match=facts("00000.parquet: … links")):
        list(read_alignments(tmp_path)[1])


def test_a_large_window_has_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "_BUFFER_BYTES", 0)
    info = RunInfo("alignments", SIGNATURE, 4, 1, 2, windows=4)
    table = FORM.table([0], [Alignment("", "", (), (), [])])
    writer = PartsWriter(tmp_path, info, info.schema(table.schema), Names("--resume", "--overwrite", "-o"))
    for number in (1, 3):
        writer.add(table)
        writer.commit(number)
    writer.finish()
    assert [part.number for part in parts_in(tmp_path)] == [1, 3]


def test_windows_are_read_in_the_order_of_the_text(tmp_path):
    """Whatever their ids say, and whichever shard has aligned them; none may be missing, or there twice."""
    tables = [FORM.table([9 - number], [Alignment("", "", (), (), [(number, 0)])]) for number in range(5)]
    for number, table in enumerate(tables):
        run = RunInfo("alignments", SIGNATURE, 5, number % 2, 2, windows=5)
        pq.write_table(table.cast(run.schema(table.schema)), tmp_path / run.part_name(number))
    info, read = read_alignments(tmp_path)
    assert (info.windows, list(read)) == (5, tables)
    last = tmp_path / "part-00000-of-00002-00004.parquet"
    last.rename(tmp_path / "part-00000-of-00002-00003.parquet")
    with pytest.raises(InputError, match=facts("repeats")):
        read_alignments(tmp_path)
    (tmp_path / "part-00000-of-00002-00003.parquet").unlink()
    with pytest.raises(InputError, match=facts("parts 4 are missing")):
        read_alignments(tmp_path)


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


def test_merge(tmp_path, align_eval):
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
