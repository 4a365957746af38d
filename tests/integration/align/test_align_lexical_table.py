"""``norm-align`` with a lexical table: counted on the first pairs, saved, given, after a stop."""

import shutil
from types import SimpleNamespace

import pyarrow.parquet as pq
import pytest

from fairseq_norm_plugin.align import cli as align

TWO_WAY = ("--kind", "attn_n", "--layer", 0, "--setting", "awo", "--rule", "two-way=0.3", "--lexical-table", 2)
#: Half of the text is counted, in windows that do not divide it.
HALF = (*TWO_WAY, "--lexical-table-pairs", 6)


@pytest.fixture(scope="module")
def half(data, checkpoint, files, tmp_path_factory):
    """What HALF gives: its lines and its lexical table."""
    directory = tmp_path_factory.mktemp("half")
    words = ["--path", checkpoint, "--data", data, "--source-text", files[0], "--target-text", files[1]]
    words += ["--bpe", "none", "--cpu", "--force", *HALF]
    words += ["--save-lexical-table", directory / "lexical_table", "-o", directory / "out"]
    assert align.main([str(word) for word in words]) == 0
    return SimpleNamespace(
        lines=(directory / "out").read_text().splitlines(), lexical_table=directory / "lexical_table"
    )


def test_links_are_those_of_the_long_way(run, extracted, records, backward):
    done = run(*TWO_WAY)
    assert done.lines == extracted(*TWO_WAY)
    assert "|lexical_table:2|lexical_table_pairs:10000|" in done.err
    both = (*TWO_WAY, "--join", "product")
    found = run(*both, "--reverse-path", backward, "--overwrite").lines
    assert found == extracted(*both, "--reverse", records / "reverse") != done.lines


@pytest.mark.parametrize(
    "batching", [("--max-tokens", 40), ("--window", 1), ("--window", 5, "--max-tokens", 30)], ids=str
)
def test_windows_and_batches_change_nothing(run, batching, half):
    assert run(*HALF, *batching).lines == half.lines


def test_a_lexical_table_is_saved_and_given(run, half):
    given = run(*TWO_WAY[:-2], "--lexical-table", half.lexical_table, "--overwrite")
    # the later pairs are the same; the first ones now speak for themselves
    assert given.lines[6:] == half.lines[6:]
    assert given.lines[:6] != half.lines[:6]
    assert "|lexical_table:" not in given.err
    assert "|lexical_table_file:" in given.err
    about = pq.read_table(half.lexical_table).schema.metadata[b"alignment_eval.lexical_table"].decode()
    assert '"pairs": 6' in about
    assert "|rule:two-way=0.3|null:mask|final_punctuation:no|lexical_table:2|lexical_table_pairs:6|" in about


def test_a_given_lexical_table_by_default(run, backward, half):
    """Maps and rule are those that go with a lexical table, for a text that is too short for one of its own."""
    one = run("--lexical-table", half.lexical_table, "--overwrite").err
    assert "|rule:balanced=0.35|" in one
    both = run("--lexical-table", half.lexical_table, "--reverse-path", backward, "--overwrite").err
    assert "|rule:grow=0.4|" in both
    assert "|lexical_table_file:" in both


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (
            ("--save-lexical-table", "new", "--lexical-table", 0),
            2,
            "--save-lexical-table: no lexical table is counted here",
        ),
        (("--save-lexical-table", "LEXICAL_TABLE"), 1, "lexical_table.parquet: already exists; choose another path"),
        (("--save-lexical-table", "none/new"), 1, "none/new: the directory"),
        (("--lexical-table", "DAMAGED"), 1, "damaged: damaged, or not a lexical table file"),
    ],
    ids=str,
)
def test_bad_usage(run, tmp_path, options, status, text, half):
    shutil.copy(half.lexical_table, tmp_path / "lexical_table.parquet")
    (tmp_path / "damaged").write_bytes((tmp_path / "lexical_table.parquet").read_bytes()[:-20])
    names = {
        "LEXICAL_TABLE": tmp_path / "lexical_table.parquet",
        "DAMAGED": tmp_path / "damaged",
        "new": tmp_path / "new",
    }
    done = run(*(names.get(option, option) for option in options))
    assert (done.status, done.err.count("\n")) == (status, 1), done.err
    assert text in done.err
    assert not list(tmp_path.glob("*out*[!n]"))
    assert not (tmp_path / "new").exists()
