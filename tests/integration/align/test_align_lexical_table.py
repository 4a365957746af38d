"""``norm-align`` with a lexical table: counted on the text, and given as a file."""

import pytest

from tests.plugin.model.test_alignments import TABLE

TWO_WAY = ("--kind", "attn_n", "--heads", 0, "--setting", "awo", "--rule", "two-way=0.3", "--table", "text")


def test_links_are_those_of_the_long_way(run, extracted, records, backward):
    done = run(*TWO_WAY)
    assert done.lines == extracted(*TWO_WAY)
    assert "|table:text|" in done.err
    both = (*TWO_WAY, "--join", "product")
    found = run(*both, "--reverse-path", backward, "--overwrite").lines
    assert found == extracted(*both, "--reverse", records / "reverse") != done.lines


@pytest.mark.parametrize(
    "batching", [("--max-tokens", 40), ("--window", 1), ("--window", 5, "--max-tokens", 30)], ids=str
)
def test_windows_and_batches_change_nothing(run, batching):
    assert run(*TWO_WAY, *batching).lines == run(*TWO_WAY, "--overwrite").lines


@pytest.mark.parametrize(("table", "text"), [("DAMAGED", "damaged: damaged, or not a lexical table"), ("no", "no: ")])
def test_a_table_that_cannot_be_used(run, tmp_path, table, text):
    (tmp_path / "damaged").write_bytes(TABLE.read_bytes()[:-20])
    done = run("--table", tmp_path / table.lower())
    assert (done.status, done.err.count("\n")) == (1, 1), done.err
    assert text in done.err
