"""Word alignments as Python has them: tables, files, and why two words are linked."""

import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from alignment_eval import alignment as alignments
from alignment_eval.align_pairs import align_pairs, join_sentences
from alignment_eval.alignment import Alignment, Alignments, Form, write_table
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.maps.words import FORMED


def aligned(source, target, *more, **named):
    """The alignment of two lines whose words are what blanks separate."""
    spans = (tuple(match.span() for match in re.finditer(r"\S+", line)) for line in (source, target))
    return Alignment(source, target, *spans, *more, **named)


ONE = aligned("das haus das", "the  house", [(0, 0), (1, 1), (2, 0)], {(0, 0): 0.5, (1, 1): 1, (2, 0): 0})
SYMMETRIZED = aligned("a b", "x y", [(0, 0), (1, 0)])
NONE = aligned("a", "x", [])
EMPTY = aligned("", "x", [], status="empty")
ALL = Alignments([ONE, SYMMETRIZED, NONE, EMPTY])


def test_frame_has_a_row_for_each_link():
    frame = ONE.to_frame()
    assert frame.to_dict("list") == {
        "source": ["das", "haus", "das"],
        "target": ["the", "house", "the"],
        "source_index": [0, 1, 2],
        "target_index": [0, 1, 0],
        "confidence": [0.5, 1, 0],
    }
    assert SYMMETRIZED.to_frame()["confidence"].isna().all()
    for alignment in (NONE, EMPTY):
        assert len(alignment.to_frame()) == 0
        assert list(map(str, alignment.to_frame().dtypes[2:])) == ["int64", "int64", "float64"]


def test_lines_and_repr():
    assert ONE.to_pharaoh() == "0-0 1-1 2-0"
    assert ONE.to_pharaoh(confidences=True) == "0-0:0.5 1-1:1.0 2-0:0.0"
    assert NONE.to_pharaoh(confidences=True) == EMPTY.to_pharaoh() == ""
    assert repr(ONE) == "Alignment('das haus das', 'the house', '0-0 1-1 2-0')"
    assert repr(EMPTY) == "Alignment('', 'x', status='empty')"


def test_a_row_has_the_lines_and_where_their_words_are():
    assert ONE.to_row() == {
        "source": "das haus das",
        "target": "the  house",
        "source_spans": [[0, 3], [4, 8], [9, 12]],
        "target_spans": [[0, 3], [5, 10]],
        "links": [[0, 0], [1, 1], [2, 0]],
        "confidences": [0.5, 1, 0],
        "status": "ok",
        "score": None,
    }
    assert (ONE.source_words, ONE.target_words) == (("das", "haus", "das"), ("the", "house"))
    assert (SYMMETRIZED.to_row()["confidences"], NONE.to_row()["confidences"]) == (None, [])


def test_all_rows_as_a_frame_as_json_and_as_a_table(tmp_path):
    rows = [alignment.to_row() for alignment in ALL]
    frame = ALL.to_frame()
    assert list(frame.columns) == list(rows[0])
    assert list(frame["source_spans"]) == [row["source_spans"] for row in rows]
    ALL.to_jsonl(tmp_path / "hyp.jsonl")
    assert [json.loads(line) for line in (tmp_path / "hyp.jsonl").read_text().splitlines()] == rows
    ALL.to_parquet(tmp_path / "hyp.parquet")
    numbered = [{"id": number, **row} for number, row in enumerate(rows)]
    assert pq.read_table(tmp_path / "hyp.parquet").to_pylist() == numbered
    Alignments([]).to_parquet(tmp_path / "none.parquet")
    none, columns = pq.read_table(tmp_path / "none.parquet"), set(numbered[0])
    assert (none.num_rows, set(none.column_names) >= columns) == (0, True)


@pytest.mark.parametrize("alignment", [ONE, SYMMETRIZED, EMPTY])
def test_rows_of_tables_and_what_they_say(tmp_path, monkeypatch, alignment):
    """Whatever tables they come in, row groups are alike; the types do not depend on the rows."""
    monkeypatch.setattr(alignments, "GROUP_ROWS", 2)
    form, ids, row = Form(text_ids=True), "xyzab", alignment.to_row()
    assert Alignment.of_row(row) == alignment
    for cuts in ((0, 5), (0, 1, 1, 4, 5)):
        tables = [form.table(ids[start:end], [alignment] * (end - start)) for start, end in itertools.pairwise(cuts)]
        write_table(tmp_path / "t", tables, "a:b")
        written = pq.ParquetFile(tmp_path / "t")
        assert [written.metadata.row_group(n).num_rows for n in range(written.num_row_groups)] == [2, 2, 1]
        assert written.read().to_pylist() == [{"id": id_, **row} for id_ in ids]
        assert {name: written.schema_arrow.field(name).type for name in form.types} == form.types


def test_a_file_has_a_line_a_pair_and_replaces_what_was_there(tmp_path):
    path = tmp_path / "hyp.pharaoh"
    path.write_text("old")
    with pytest.raises(InputError, match=r"hyp\.pharaoh: already exists"):
        ALL.to_pharaoh(path)
    assert path.read_text() == "old"
    ALL.to_pharaoh(path, overwrite=True)
    assert path.read_text() == "0-0 1-1 2-0\n0-0 1-0\n\n\n"
    ALL[:1].to_pharaoh(path, confidences=True, overwrite=True)
    assert path.read_text() == "0-0:0.5 1-1:1.0 2-0:0.0\n"
    assert list(tmp_path.iterdir()) == [path]
    signed = Alignments(list(ALL), "run:1")
    signed.to_pharaoh(path, overwrite=True)
    path.unlink()
    Alignments(list(ALL), "run:2").to_pharaoh(path)  # a signature without its file is nobody's
    assert json.loads(path.with_name(f"{path.name}.signature.json").read_text()) == {"run": "2"}
    path.unlink()
    path.with_name(f"{path.name}.signature.json").rename(tmp_path / "kept")
    ALL.to_pharaoh(path)
    (tmp_path / "kept").rename(path.with_name(f"{path.name}.signature.json"))
    with pytest.raises(InputError, match="already exists"):
        signed.to_pharaoh(path)


def test_scores_are_a_table(tmp_path):
    scores = PairScores(-1.5, unsupported=0.25, omitted=0.5, unsupported_words=[0.0, 0.5], omitted_words=[1, 0, 0.25])
    scored = Alignments([replace(ONE, scores=scores), replace(EMPTY, scores=PairScores())])
    frame = scored.scores
    assert frame["status"].tolist() == ["ok", "empty"]
    assert frame["unsupported"].fillna(9).tolist() == [0.25, 9]
    assert frame["reverse_log_prob"].isna().all()
    with pytest.raises(UsageError, match="scores=True"):
        ALL.scores  # noqa: B018
    scored.to_parquet(tmp_path / "out.parquet")
    assert pq.read_table(tmp_path / "out.parquet")["omitted_words"].to_pylist() == [[1, 0, 0.25], None]


def test_sentences_are_joined_to_the_alignment_of_their_lines():
    first, second = replace(ONE, source="das haus das ", target="the  house "), aligned("ja .", "oh yes", [(1, 1)])
    whole = join_sentences([first, second], 7, [(2,), (2,)])
    expected = aligned("das haus das ja .", "the  house oh yes", [*ONE.links, (4, 3)], ONE.confidences)
    assert (whole, whole.id) == (expected, 7)
    refused = join_sentences([first, EMPTY], 7, [(2,), (1,)])
    assert (refused.status, refused.links, refused.target) == ("empty", [], "the  house x")


PAIR = "a b@@ c . </s>", "x y z@@ u . </s>"
#: Rule -> what holds of the shares of each explanation.
RULES = {
    "kobayashi2020": lambda why: True,
    "top-k=2": lambda why: True,
    "shift-att": lambda why: True,
    "threshold=0.3": lambda why: why.linked == (why.compared >= 0.3),
    "two-way=0.4": lambda why: why.linked == (why.compared >= 0.4) and why.compared == why.two_way,
}


def explained(make_sentence, options, join=None, sharpening=None, texts=PAIR, **changes):
    """The alignment of one pair whose maps are kept, and the explanation of each cell."""
    forward, reverse = (make_sentence(k, *sides) for k, sides in enumerate((texts, texts[::-1])))
    for name, change in changes.items():
        change(forward.arrays[name])
    maps = read_word_map(forward, options, True), read_word_map(reverse, options, True) if join else None
    (pair,) = align_pairs([maps], AlignmentMethod(options, options if join else None, join, sharpening))
    size = len(pair.source_words), len(pair.target_words)
    return pair, {cell: pair.explain(*cell) for cell in np.ndindex(*size)}


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("final", [False, True])
def test_an_explanation_agrees_with_the_links(make_sentence, rule, final):
    options = ExtractionOptions("attn_n", "1.2:awi,0", "product", "awo", rule, final_punctuation=final)
    pair, cells = explained(make_sentence, options)
    assert [cell for cell, why in cells.items() if why.linked] == pair.links
    null = pair.word_map["(null)"].to_numpy()
    for (i, j), why in cells.items():
        assert (why.source, why.target) == (pair.source_words[i], pair.target_words[j])
        assert list(why.maps) == ["attn_n head 1.2 (AWI)", "attn_n layer 0 (AWO)"]
        assert why.share == pytest.approx(pair.word_map.iloc[j, i])
        assert RULES[rule](why) or (final and (i == 2 or j == 3))
        assert f"{why.share:.3f}" in str(why)
        assert ("final punctuation" in why.reason) == (final and (i == 2 or j == 3))
        if rule in ("kobayashi2020", "top-k=2") and not final:
            place = 1 + sum(cells[other, j].share > why.share for other in range(3)) + (null[j] > why.share)
            assert f"number {place} of its row" in why.reason
    # maps are multiplied: the shares of a row are as their geometric means
    row = [np.sqrt(np.prod(list(cells[i, 1].maps.values()))) for i in range(3)]
    assert [cells[i, 1].share / cells[0, 1].share for i in range(3)] == pytest.approx([value / row[0] for value in row])


TWO_WAY = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")


@pytest.mark.parametrize("join", [None, "product"])
def test_an_explanation_of_a_sharpened_map(make_sentence, join):
    """Its parts make what the rule compares."""
    pair, cells = explained(make_sentence, TWO_WAY, join, FORMED)
    assert list(cells[0, 1].maps) == ["attn_n layer 1 (AWO)", "reverse attn_n layer 1 (AWO)"][: 1 + (join is not None)]
    for j in range(4):
        row = [cells[i, j] for i in range(3)]
        assert np.mean([why.table for why in row]) == pytest.approx(1)
    for why in cells.values():
        shares = (1 - why.weight) * why.two_way + why.weight * why.order
        assert why.compared == pytest.approx(shares * (1 if why.fertility is None else why.fertility))
        assert (why.fertility is None, why.beginnings) == (join is None, 0)  # without a table nothing is known
        assert f"{why.compared:.3f}  compared by rule two-way=0.3" in str(why)
    assert [cell for cell, why in cells.items() if why.compared >= 0.3] == pair.links


def test_an_explanation_of_links_of_both_directions(make_sentence):
    _, cells = explained(make_sentence, TWO_WAY, "mutual")
    for why in cells.values():
        assert why.linked == ("forward yes, reverse yes" in why.reason)


def test_a_share_of_exactly_the_least_is_explained_like_larger_ones(make_sentence):
    options = replace(TWO_WAY, rule="two-way=0.5")
    _, cells = explained(make_sentence, options, texts=("a b </s>", "x y </s>"), layer_attn_n=lambda maps: maps.fill(1))
    for why in cells.values():
        assert (why.compared, why.linked) == (0.5, True)
        assert "their share 0.500 is at least 0.5" in why.reason


def test_what_cannot_be_explained(make_sentence):
    pair, _ = explained(make_sentence, ExtractionOptions("attn_n", "1"))
    for cell in ((3, 0), (0, 4), (0, -1)):
        with pytest.raises(UsageError, match="3 source and 4 target words"):
            pair.explain(*cell)
    for of_pair in (lambda: ONE.explain(0, 0), lambda: ONE.word_map):
        with pytest.raises(UsageError, match="not kept"):
            of_pair()
