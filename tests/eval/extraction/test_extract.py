import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.commands.extract import max_norm_layer
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import (
    confidences,
    ends_in_punctuation,
    extract,
    linked_cells,
    named_maps,
    stacked_maps,
)
from alignment_eval.extraction.method import RULES, ExtractionOptions, MapName
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.maps.words import SETTINGS, word_map
from tests.eval.maps.test_order import slow_two_way
from tests.facts import facts

#: (setting, rule, null) of every extraction there is.
CONFIGURATIONS = [(setting, rule, null) for setting in SETTINGS for rule, nulls in RULES.items() for null in nulls]


def words_of(side):
    return len({word for word in side.words.tolist() if word >= 0})


def pieces(side, word):
    """The tokens of a word, those of no word for None."""
    return [i for i, w in enumerate(side.words.tolist()) if (w == word if word is not None else w < 0)]


def is_punctuation(side, word):
    return set("".join(side.tokens[i] for i in pieces(side, word)).replace("@@", "")) <= set(".!?")


def slow_score(m, source, target, shift, s, t):
    rows = pieces(target, t)
    return sum(sum(float(m[r + shift, c]) for c in pieces(source, s)) for r in rows) / len(rows)


def slow_links(m, source, target, setting, rule, null, final):
    """The rules of alignment.md, written out word by word for one map [T, S]."""
    shift = {"awo": 0, "awi": 1}[setting]
    Ws, Wt = words_of(source), words_of(target)
    final = final and Ws > 0 and Wt > 0 and is_punctuation(source, Ws - 1) and is_punctuation(target, Wt - 1)
    links = {(Ws - 1, Wt - 1)} if final else set()
    open_words = [s for s in range(Ws) if not (final and s == Ws - 1)]
    for t in range(Wt - 1 if final else Wt):
        if rule == "kobayashi2020":
            candidates = [*open_words, *([None] if null == "allow" else [])]
            scores = [slow_score(m, source, target, shift, s, t) for s in candidates]
            best = candidates[scores.index(max(scores))] if scores else None
            if best is not None and max(scores) > 0:
                links.add((best, t))
        else:
            columns = [(c, s) for s in open_words for c in pieces(source, s)]
            for r in pieces(target, t):
                row = [float(m[r + shift, c]) for c, _ in columns]
                if any(row):
                    links.add((columns[row.index(max(row))][1], t))
    return links


@st.composite
def sides(draw, ends_with_special):
    """Up to 5 words of up to 9 pieces, special tokens anywhere between them, sometimes a final mark."""
    tokens = []
    words = []
    lengths = draw(st.lists(st.sampled_from([1, 1, 2, 3, 9]), max_size=5))
    for word, length in enumerate(lengths):
        mark = word == len(lengths) - 1 and draw(st.booleans())
        for _ in range(draw(st.sampled_from([0, 0, 0, 1, 2]))):
            tokens.append("<tag>")
            words.append(-1)
        piece = "." if mark else "w"
        tokens += [f"{piece}@@"] * (length - 1) + [piece]
        words += [word] * length
    if ends_with_special or draw(st.booleans()):
        tokens.append("</s>")
        words.append(-1)
    return SentenceSide(tuple(tokens), np.array(words, dtype=np.int32))


@given(
    source=sides(ends_with_special=False),
    target=sides(ends_with_special=True),
    configuration=st.sampled_from(CONFIGURATIONS),
    final=st.booleans(),
    levels=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_rules_are_those_of_the_slow_loop(source, target, configuration, final, levels, seed):
    setting, rule, null = configuration
    # Few levels give many ties; integers make every sum exact, in whatever order it is taken.
    shape = (2, 3, len(target.tokens), len(source.tokens))
    maps = np.random.default_rng(seed).integers(0, levels + 1, shape).astype(np.float32)
    options = ExtractionOptions("attn_w", "0", "mean", setting, rule, null, final)
    linked = linked_cells(maps, SentenceMaps(0, source, target, (0, 1)), options)
    assert linked.shape == (2, 3, words_of(source), words_of(target))
    for layer, head in np.ndindex(2, 3):
        expected = slow_links(maps[layer, head], source, target, setting, rule, null, final)
        assert {(int(i), int(j)) for i, j in np.argwhere(linked[layer, head])} == expected


@given(
    source=sides(ends_with_special=False),
    target=sides(ends_with_special=True),
    setting=st.sampled_from(list(SETTINGS)),
    seed=st.integers(0, 2**32 - 1),
)
def test_word_map_is_that_of_the_slow_loop(source, target, setting, seed):
    maps = np.random.default_rng(seed).uniform(size=(2, len(target.tokens), len(source.tokens)))
    got = word_map(maps, source, target, setting)
    assert got.dtype == np.float64
    assert got.shape == (2, words_of(target), words_of(source) + 1)
    columns = [*range(words_of(source)), None]
    for k, t, s in np.ndindex(got.shape):
        slow = slow_score(maps[k], source, target, SETTINGS[setting], columns[s], t)
        assert got[k, t, s] == pytest.approx(slow, rel=1e-14, abs=0)


@given(shape=st.tuples(*[st.integers(1, 4)] * 2), seed=st.integers(0, 2**32 - 1))
def test_confidences_cell_by_cell(shape, seed):
    """Of two-way shares, which a sharp map has already; in two decimals."""
    scores = np.random.default_rng(seed).integers(0, 4, shape) / 2
    for shares, sharp in ((slow_two_way(scores), False), (scores, True)):
        expected = 1 - np.maximum(1 - shares, 0) ** 2
        np.testing.assert_allclose(confidences(scores, sharp), expected, atol=0.005 + 1e-9)


def one_map(m, source, target):
    """A sentence of one layer and one head whose attn_w map is ``m``."""
    array = np.array(m, dtype=np.float32)[None, None]
    return SentenceMaps(0, source, target, layers=(0,), arrays={"head_attn_w": array})


def links(s, setting, rule="kobayashi2020", **options):
    return set(extract(s, ExtractionOptions("attn_w", "0", "mean", setting, rule, **options)))


@pytest.mark.parametrize("copies", [3, 17])
def test_equal_words_tie_exactly(make_side, copies):
    """Words of equal pieces stay exact ties, also where sums round, and whatever head stands beside them."""
    word = "q@@ " * (copies - 1) + "q"
    source, target = make_side(f"{word} {word} {word} </s>"), make_side(f"{word} y </s>")
    rng = np.random.default_rng(copies)
    maps = rng.uniform(size=(2, 3, len(target.tokens), len(source.tokens)))
    maps[..., : 3 * copies] = np.tile(rng.uniform(1, 2, size=(*maps.shape[:-1], copies)), 3)
    merged = word_map(maps, source, target, "awi")
    np.testing.assert_array_equal(merged[..., 1], merged[..., 0])
    np.testing.assert_array_equal(merged[..., 2], merged[..., 0])
    np.testing.assert_array_equal(merged[1, 2], word_map(maps[1, 2], source, target, "awi"))


@pytest.mark.parametrize(
    ("source", "target", "mark", "applies"),
    [
        ("a . </s>", "x !@@ ? </s>", "@@", True),
        ("▁a ▁ . </s>", "▁x ▁» </s>", "▁", True),
        ("a ##. </s>", "x . </s>", "##", False),  # the word is "a."
        ("a . </s>", "x $ </s>", "none", False),  # a symbol (Sc)
        ("</s>", ". </s>", "none", False),
    ],
)
def test_final_punctuation(make_side, source, target, mark, applies):
    assert ends_in_punctuation(make_side(source, mark), make_side(target, mark)) is applies


def test_extract_reads_the_map_that_is_named(make_sentence):
    s = replace(make_sentence(1), layers=(3, 5))
    weights = s.arrays["head_attn_w"].astype(np.float64)
    norms = s.arrays["transformed_norm"].astype(np.float64)
    for k, (setting, rule, null) in itertools.product(range(2), CONFIGURATIONS):
        maps = {
            ("attn_w", None): weights[k].mean(axis=0),
            ("attn_n", None): s.arrays["layer_attn_n"][k],
            **{("attn_w", h): weights[k, h] for h in range(3)},
            **{("attn_n", h): weights[k, h] * norms[k, h] for h in range(3)},
        }
        for (kind, head), m in maps.items():
            options = ExtractionOptions(kind, [MapName(s.layers[k], head)], "mean", setting, rule, null)
            assert extract(s, options) == slow_links(m, s.source, s.target, setting, rule, null, False)


def test_a_head_alone_has_the_map_that_a_sweep_gives_it(make_sentence):
    """To the last bit, because that decides between equal values."""
    s = make_sentence(1)
    for layer, head in itertools.product(range(2), range(3)):
        (alone,) = named_maps(s, ExtractionOptions("attn_n", [MapName(layer, head)]))
        assert (alone == stacked_maps(s, "attn_n")[layer, head]).all()


def test_values_that_are_not_finite_are_refused(make_sentence):
    s = make_sentence(6)
    s.arrays["layer_attn_n"].flat[3] = np.nan
    with pytest.raises(InputError, match=facts("sentence 6: a map of kind 'attn_n' holds NaN or infinite values")):
        stacked_maps(s, "attn_n")


def test_layers_and_heads_that_are_not_there(make_sentence):
    s = make_sentence()
    with pytest.raises(InputError, match=facts("map 0.-1 … of 3 heads")):
        extract(s, ExtractionOptions("attn_w", [MapName(0, -1)]))
    with pytest.raises(InputError, match=r"sentence 4 cannot be aligned, its status is 'too long'"):
        extract(make_sentence(4, status="too long"), ExtractionOptions("attn_w", "0"))
    with pytest.raises(InputError, match=r"head 1\.0 of kind alti: this kind has maps of whole layers only"):
        ExtractionOptions("alti", "0,1.0")


def test_awi_of_a_last_token_is_refused(make_side):
    s = one_map([[1, 0], [1, 0]], make_side("a </s>"), make_side("x y"))
    assert links(s, "awo") == {(0, 0), (0, 1)}
    with pytest.raises(InputError, match=facts("sentence 0 … </s> … AWI of")):
        links(s, "awi")


def test_max_norm_layer_pools_over_cells(make_sentence):
    """A long sentence weighs more than a short one: the mean of means would say layer 7."""
    short, long = make_sentence(0, source="</s>", target="</s>", heads=1), make_sentence(1, heads=1)
    for s, norms in ((short, (1, 100)), (long, (11, 6))):
        s.arrays["head_attn_w"][:] = 0.25
        s.arrays["transformed_norm"][:] = 4 * np.array(norms)[:, None, None]
    corpus = [replace(s, layers=(4, 7)) for s in (short, long)]
    assert max_norm_layer([*corpus, make_sentence(2, status="too long")], "awi") == 4
    assert max_norm_layer(corpus[:1], "awi") == 7
    corpus[1].arrays["transformed_norm"][:] = 1
    assert max_norm_layer(corpus[1:], "awi") == 4  # the first of equal ones
    corpus[1].arrays["transformed_norm"][0, 0, 0] = np.nan
    with pytest.raises(InputError, match=r"layer max-norm: the maps hold NaN or infinite values"):
        max_norm_layer(corpus[1:], "awi")
    with pytest.raises(InputError, match=facts("layer max-norm: no sentence has maps … to take the mean of")):
        max_norm_layer([make_sentence(status="too long")], "awi")
    with pytest.raises(UsageError, match=facts("layer max-norm … with setting 'awo'")):
        max_norm_layer(corpus, "awo")


def test_words_and_maps_that_do_not_fit_the_tokens(make_side):
    s = one_map([[1, 0, 0]] * 3, make_side("a b </s>"), make_side("x y </s>"))
    strange = SentenceSide(("a", "b", "</s>"), np.array([0, 2, -1], np.int32))
    with pytest.raises(InputError, match=facts("sentence 0 … word indices of the tokens … 0, 1, 2, …")):
        links(replace(s, source=strange), "awo")
    with pytest.raises(InputError, match=facts("shape 3×3 … target × source tokens … the records are")):
        links(replace(s, target=make_side("x </s>")), "awo")
