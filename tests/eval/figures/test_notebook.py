"""What a notebook shows of maps and alignments: tables, plots, HTML."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import pyplot

from alignment_eval.alignment import Alignments
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.pair_scores import PairScores
from alignment_eval.figures.notebook import DisplayMaps
from alignment_eval.maps.words import word_map
from tests.drawn import marks_of, meshes, picture_texts
from tests.eval.test_alignment import EMPTY, ONE, SYMMETRIZED

#: Tokens that would break a page which takes them as they are.
HOSTILE = (
    "</td></table><script>alert(1)</script>",
    "<img/src=x/onerror=alert(1)>",
    "\"'onmouseover='alert(1)",
    "\u202eevil\u2066",
    "&lt;b&gt;",
    "<!--",
)


def tables(page):
    """The texts of all tables, of each row, of each cell; checks that a page has texts and tables with styles alone."""
    root = ElementTree.fromstring(f"<p>{page}</p>")
    for element in root.iter():
        assert element.tag in {"p", "div", "table", "tr", "th", "td"}
        assert element.attrib.keys() <= {"style", "dir", "scope"}
        assert not re.search(r"url\(|expression", element.get("style", ""))
    assert "<!" not in page
    assert "".join(root.itertext()).isprintable()
    return [[["".join(c.itertext()) for c in row] for row in table.iter("tr")] for table in root.iter("table")]


@pytest.fixture
def maps(make_sentence):
    return DisplayMaps.of(make_sentence(3, "a@@ b c a . </s>", "x y@@ z . . </s>"))


@pytest.mark.parametrize("setting", ["awo", "awi"])
@pytest.mark.parametrize("head", [None, 2])
def test_frame_of_words_and_of_tokens(maps, setting, head):
    frame = maps.to_frame("attn_n", layer=1, head=head, setting=setting)
    assert list(frame.columns) == ["ab", "c", "a", ".", "(null)"]
    assert list(frame.index) == ["x", "yz", ".", ".#2"]
    assert (frame.index.name, frame.columns.name) == ("target", "source")
    whole = maps.layer_maps("attn_n")[1] if head is None else maps.head_maps("attn_n")[1, head]
    np.testing.assert_allclose(frame.to_numpy(), word_map(whole, maps.source, maps.target, setting), rtol=1e-6)
    assert frame.loc[".#2", "(null)"] == frame.to_numpy()[3, 4]
    tokens = maps.to_frame("attn_n", layer=1, head=head, level="token", setting=setting)
    np.testing.assert_allclose(tokens, whole[:5] if setting == "awo" else whole[1:], rtol=1e-6)


def test_all_maps_are_one_long_table(maps):
    table = maps.to_frame("attn_n", level="token", setting="awi")
    assert list(table.columns[:3]) == ["kind", "layer", "head"]
    assert (len(table), set(table["kind"])) == (2 * (3 + 1) * 6 * 5, {"attn_n"})
    for side, tokens in (("source", ["a@@", "b", "c", "a", ".", "</s>"]), ("target", ["x", "y@@", "z", ".", "."])):
        assert list(dict.fromkeys(zip(table[f"{side}_index"], table[side]))) == list(enumerate(tokens))
    for layer, head in ((0, 2), (1, None)):
        rows = table[(table["layer"] == layer) & (table["head"].isna() if head is None else table["head"] == head)]
        wide = maps.to_frame("attn_n", layer=layer, head=head, level="token", setting="awi")
        np.testing.assert_array_equal(rows.pivot(index="target_index", columns="source_index", values="value"), wide)
    with pytest.raises(UsageError, match="head 1 without a layer"):
        maps.to_frame(head=1)


def test_bad_names_are_refused(maps):
    with pytest.raises(InputError, match=r"map 2\b.* layers 0, 1 "):
        maps.plot(layer=2)
    with pytest.raises(InputError, match=r"map 0\.3\b.* of 3 heads"):
        maps.to_frame(layer=0, head=3)
    with pytest.raises(UsageError, match="unknown level 'sentence'"):
        maps.to_frame(layer=0, level="sentence")
    with pytest.raises(UsageError, match="unknown setting 'both'"):
        maps.to_frame(setting="both")


def test_plot_draws_the_map_the_words_and_the_links(maps):
    axes = maps.plot("attn_n", layer=1, head=0, links=[(0, 1), (3, 2)])
    (mesh,) = meshes(axes)
    np.testing.assert_array_equal(mesh.get_array(), maps.to_frame("attn_n", layer=1, head=0).to_numpy())
    assert axes.get_figure().axes[1].get_ylabel() == "norms"  # the colour bar
    columns, rows, title = picture_texts(axes)
    assert (columns, rows) == (["ab", "c", "a", ".", "(null)"], ["x", "yz", ".", "."])
    assert all(part in title.replace("\n", " ") for part in ("norms", "layer 1 (2nd)", "head 0", "AWO"))
    assert list(marks_of(axes).values()) == [[(0, 1), (3, 2)]]
    assert axes.get_figure() is pyplot.gcf()


def test_kinds_stand_side_by_side_and_layers_below_each_other(maps):
    lines = maps.plot(kinds=["attn_w", "attn_n"])
    assert [len(line) for line in lines] == [2, 2]
    values = maps.to_frame("attn_n", layer=1).to_numpy()
    np.testing.assert_allclose(meshes(lines[1][1])[0].get_array(), values / values.max())
    with pytest.raises(UsageError, match="ax with 2 maps"):
        maps.plot(ax=pyplot.gca())


def test_html_shows_the_word_map_of_the_highest_layer(maps):
    page = maps._repr_html_()
    ((heads, *rows),) = tables(page)
    assert heads == ["", "ab", "c", "a", ".", "(null)"]
    assert [row[0] for row in rows] == ["x", "yz", ".", "."]
    values = maps.to_frame("attn_n", layer=1).to_numpy()
    shares = np.array([[float(cell) for cell in row[1:]] for row in rows])
    np.testing.assert_allclose(shares, 100 * values / values.sum(axis=1, keepdims=True), atol=0.51)
    assert "norms (attn_n), layer 1 (2nd), AWO" in page


def test_html_of_hostile_tokens(make_sentence):
    line = " ".join(HOSTILE)
    ((heads, *_),) = tables(DisplayMaps.of(make_sentence(0, f"{line} b </s>", f"x {line} </s>"))._repr_html_())
    assert len(heads) == 3 + len(HOSTILE)


# ---- alignments


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


SCORES = {"unsupported": 0.25, "omitted": 0.5, "unsupported_words": [0.0, 0.5], "omitted_words": [1, 0, 0.25]}
SCORED = replace(ONE, scores=PairScores(-1.5, **SCORES))


def test_html_marks_the_links_and_the_words_that_the_other_side_does_not_say():
    page = ONE._repr_html_()
    assert tables(page) == [[["", "das", "haus", "das"], ["the", "50", "", "0"], ["house", "", "100", ""]]]
    assert tables(SYMMETRIZED._repr_html_())[0][1] == ["x", "●", "●"]
    assert tables(EMPTY._repr_html_()) == []
    assert "empty" in EMPTY._repr_html_()
    page = SCORED._repr_html_()
    assert len(tables(page)) == 1
    assert "unsupported 0.25, omitted 0.50" in page
    assert re.findall(r"rgba\(219,68,55,([^)]*)\)", page) == ["0.60", "0.15", "0.30"]


def test_a_list_shows_the_first_pairs_with_their_scores():
    page = Alignments([SCORED, EMPTY, *[ONE] * 10])._repr_html_()
    ((heads, first, second, *others),) = tables(page)
    assert heads == ["", "source", "target", "links", "log_prob", "unsupported", "omitted"]
    assert first == ["0", "das haus das", "the house", ONE.to_pharaoh(), "-1.50", "0.25", "0.50"]
    assert second[3:] == ["empty", "", "", ""]
    assert (len(others), "and 2 more" in page) == (8, True)
