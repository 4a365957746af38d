"""What ``norm-align`` writes with the text: JSON lines and tables."""

import json
import math

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest

import fairseq_norm_plugin
from tests.demo import BOTH, raw_lines
from tests.facts import says

COLUMNS = ["source", "target", "source_spans", "target_spans", "links", "confidences", "status", "score"]
#: Raw text; blanks of several kinds, an entity, an empty line.
RAW = (
    ["Wir sind hier, im Haus.", "Das  ist\u00a0gut & schön;", "", "Herr Präsident, vielen Dank! 😀"],
    ["We are here, in the house.", "That's good &amp; fine;", "x", "Mr President, thank you! 😀"],
)
#: How links are read, so that no profile is needed.
RULE = ("--heads", "2", "--rule", "kobayashi2020")


@pytest.mark.parametrize("options", [{}, {"table": "text"}, {"table": "text", "split_sentences": True}], ids=str)
def test_neither_batches_nor_the_order_of_the_pairs_change_a_row(options):
    """Of 120 pairs: those of the demo, and each with the one after it."""
    sides = [raw_lines(language) for language in ("de", "en")]
    sides = [side + [" ".join(lines) for lines in zip(side, side[1:] + side[:1])] for side in sides]
    order = np.random.default_rng(1).permutation(len(sides[0]))
    model = fairseq_norm_plugin.load("demo")
    rows = [pair.to_row() for pair in model.align(*sides, scores=True, **options)]
    shuffled = model.align(*([side[k] for k in order] for side in sides), scores=True, max_tokens=300, **options)
    assert [pair.to_row() for pair in shuffled] == [rows[k] for k in order]


@pytest.fixture
def write(lines_run, tmp_path):
    """Align the raw text with the bundled model, whose profile says how its text is made; (exit status, the file)."""

    def start(name, *options, **models):
        return lines_run(*RULE, *options, sources=RAW[0], targets=RAW[1], out=name, **models).status, tmp_path / name

    return start


def rows_of(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_rows_have_the_raw_text_and_the_links_of_the_pharaoh_file(write, tmp_path):
    words = [tmp_path / "words.de", tmp_path / "words.en"]
    status, pharaoh = write("out", "--confidences", "--tokens-out", *words)
    assert status == 0
    rows = rows_of(write("out.jsonl")[1])
    assert len(rows) == 4
    tokens = [file.read_text(encoding="utf-8").split("\n")[:-1] for file in words]
    for number, (row, line) in enumerate(zip(rows, pharaoh.read_text().split("\n"))):
        assert list(row) == COLUMNS
        for which, side in enumerate(("source", "target")):
            assert row[side] == RAW[which][number]
            found = [row[side][start:end] for start, end in row[f"{side}_spans"]]
            assert " ".join(found) == tokens[which][number]
        scored = zip(row["links"], row["confidences"])
        assert " ".join(f"{i}-{j}:{p!r}" for (i, j), p in scored) == line
        assert row["score"] is None
    assert [row["status"] for row in rows] == ["ok", "ok", "empty", "ok"]
    assert (rows[2]["source_spans"], rows[2]["target_spans"], rows[2]["links"]) == ([], [[0, 1]], [])
    assert tokens[0][0] == "Wir sind hier , im Haus ."
    assert tokens[1][1].startswith("That 's good & amp ; fine ;")


def test_scores_are_the_same_in_every_form(write, tmp_path):
    table = tmp_path / "scores.tsv"
    status, plain = write("out", "--scores", table, "--source-contribution")
    assert status == 0
    assert plain.read_bytes() == write("links")[1].read_bytes()
    frame = pd.read_csv(table, sep="\t")
    rows = rows_of(write("out.jsonl", "--scores", "--source-contribution")[1])
    figures = list(frame.columns)[:-1]
    assert [*COLUMNS, *figures, "unsupported_words", "omitted_words"] == list(rows[0])
    for row, line in zip(rows, frame.to_dict("records")):
        numbers = {name: math.nan if row[name] is None else row[name] for name in figures}
        assert line.pop("status") == row["status"]
        assert numbers == pytest.approx(line, nan_ok=True, abs=2e-6)
    assert rows[2]["unsupported"] is rows[2]["omitted_words"] is None
    for row in (rows[0], rows[1], rows[3]):
        for side, answer in (("source", "omitted"), ("target", "unsupported")):
            assert len(row[f"{answer}_words"]) == len(row[f"{side}_spans"])
        assert 0 < row["source_contribution"] < 1
    path = write("out.parquet", "--scores", "--source-contribution")[1]
    assert pq.read_table(path).to_pylist() == [{"id": number, **row} for number, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("source", "target", "warned"),
    [
        ("Das <b>Haus</b>.", "The house.", "text has tags … --markup"),
        ("Das <b>Haus</b>.", "The <b>house</b>.", "text has tags … out of the target text … --markup"),
        ("1 < 2, <3", "1 < 2, <3", ""),
    ],
)
def test_scores_of_text_with_tags(lines_run, tmp_path, source, target, warned):
    done = lines_run("--scores", tmp_path / "scores.tsv", "--force", sources=[source], targets=[target])
    assert done.status == 0
    assert says(done.err, warned) if warned else "--markup" not in done.err


def test_links_of_two_models_that_are_symmetrized_have_no_confidences(write):
    _, path = write("out.jsonl", "--reverse-heads", 2, "--join", "grow-diag", models=BOTH)
    rows = rows_of(path)
    assert rows[0]["links"]
    assert [row["confidences"] for row in rows] == [None, None, [], None]
