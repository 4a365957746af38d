"""Merging the parts of alignments: any distribution of sentences gives the lines in corpus order."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.records.merge import merged
from tests.eval.records.shards import write
from tests.facts import facts


@given(places=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3)), max_size=30))
@settings(max_examples=30, deadline=None)
def test_any_distribution_gives_the_lines_in_order(tmp_path_factory, places):
    lines = [" ".join(f"{i}-{j}" for j in range(i % 4 if i % 3 else 0)) for i in range(len(places))]
    shards = [[{} for _ in range(4)] for _ in range(3)]
    for id_, (shard, part) in reversed(list(enumerate(places))):
        shards[shard][part][id_] = lines[id_]
    alignments = merged(write(tmp_path_factory.mktemp("run"), shards, len(lines), skipped=range(0, 99, 3)))
    assert list(alignments) == lines
    assert alignments.skipped == len(lines[::3])


def test_a_part_that_another_program_has_copied(tmp_path):
    directory = write(tmp_path, [[{0: "0-0", 2: ""}], [{1: "1-0"}]], 3)
    part = directory / "part-00001-of-00002-00000.parquet"
    table = pq.read_table(part)
    copied = pa.table({name: table[name].to_pylist() for name in reversed(table.schema.names)})
    pq.write_table(copied.replace_schema_metadata(table.schema.metadata), part)
    assert list(merged(directory)) == ["0-0", "1-0", ""]


def test_a_sentence_that_was_skipped_has_no_links(tmp_path):
    with pytest.raises(InputError, match=facts("00000.parquet: … has links, but its status")):
        merged(write(tmp_path, [[{0: "0-0", 1: "0-0"}]], 2, skipped=[1]))


@pytest.mark.parametrize("links", ["0-0 ", "0 0", "\x1b[31m", "0-0\n1-1", "0-x", "ä"])
def test_links_of_another_form(tmp_path, links):
    with pytest.raises(InputError, match=facts("00000.parquet: … i-j")) as error:
        merged(write(tmp_path, [[{0: links}]], 1))
    assert str(error.value).isprintable()
