import json
import re
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
from matplotlib import pyplot

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.report.alignment_view import Alignment, Alignments
from tests.drawn import marks_of, meshes, picture_texts
from tests.eval.report.view_pages import check_page, tables


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


def test_scores_are_a_table_and_shade_words(tmp_path):
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
    page = scored[0]._repr_html_()
    check_page(page)
    assert "unsupported 0.25, omitted 0.50" in page
    assert re.findall(r"rgba\(219,68,55,([^)]*)\)", page) == ["0.60", "0.15", "0.30"]


def test_plot_marks_the_links():
    axes = ONE.plot()
    assert picture_texts(axes)[:2] == (["das", "haus", "das"], ["the", "house"])
    assert list(marks_of(axes).values()) == [ONE.links]
    np.testing.assert_array_equal(meshes(axes)[0].get_array(), [[0.5, 0, 0], [0, 1, 0]])
    _, ax = pyplot.subplots()
    assert SYMMETRIZED.plot(ax=ax) is ax
    assert meshes(ax)[0].get_array().tolist() == [[1, 1], [0, 0]]
    with pytest.raises(InputError, match="both sides need at least one word"):
        EMPTY.plot()


def test_lines_and_repr():
    assert ONE.to_pharaoh() == "0-0 1-1 2-0"
    assert ONE.to_pharaoh(confidences=True) == "0-0:0.5 1-1:1.0 2-0:0.0"
    assert NONE.to_pharaoh(confidences=True) == EMPTY.to_pharaoh() == ""
    assert repr(ONE) == "Alignment('das haus das', 'the house', '0-0 1-1 2-0')"
    assert repr(EMPTY) == "Alignment('', 'x', status='empty')"
    line = " ".join("abcdefghij" * 9)
    assert len(repr(aligned(line, line, [(k, k) for k in range(90)]))) < 160


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
    for write in (ALL.to_jsonl, ALL.to_parquet):
        with pytest.raises(InputError, match="already exists"):
            write(next(tmp_path.glob(f"*{write.__name__[3:]}")))


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


def test_html_marks_the_links():
    page = ONE._repr_html_()
    check_page(page)
    assert tables(page) == [[["", "das", "haus", "das"], ["the", "50", "", "0"], ["house", "", "100", ""]]]
    assert tables(SYMMETRIZED._repr_html_())[0][1] == ["x", "●", "●"]
    check_page(EMPTY._repr_html_())
    assert "empty" in EMPTY._repr_html_()
