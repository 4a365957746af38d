"""The Python interface on the bundled model."""

import itertools
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.method import ExtractionOptions
from fairseq_norm_plugin.capture.attention import norm_attentions
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES
from tests.demo import DEMO
from tests.facts import facts


@pytest.fixture(scope="module")
def model():
    return fairseq_norm_plugin.load(DEMO / "checkpoint.pt", DEMO, "de", "en", bpe_codes=DEMO / "codes.bpe")


def test_maps_of_a_sentence_pair(model):
    maps = model.maps("wir sind hier .", "we are here .")
    assert maps.source.tokens == ("wir", "sind", "hier", ".", "</s>")
    assert maps.target.words.tolist() == [0, 1, 2, 3, -1]
    assert maps.head_maps("attn_n").shape == (3, 4, 5, 5)
    assert maps.layer_maps("attn_n").shape == (3, 5, 5)
    np.testing.assert_allclose(maps.head_maps("attn_w").sum(-1), 1, atol=1e-5)
    assert maps.score < 0
    links = extract(maps, ExtractionOptions("attn_n", "1", setting="awo"))
    best = maps.layer_maps("attn_n")[1].argmax(axis=-1)  # every word is one token here, so no merging
    assert links == {(int(i), j) for j, i in enumerate(best[:4]) if i != 4}


def test_token_ids_with_and_without_end_are_the_text(model):
    source, target = model.task.source_dictionary, model.task.target_dictionary
    text = model.maps("wir sind hier .", "we are here .")
    ids = [source.index(t) for t in text.source.tokens], [target.index(t) for t in text.target.tokens]
    for cut in (None, -1):
        (maps,) = model.maps([ids[0][:cut]], [np.array(ids[1][:cut])])
        assert maps.source.tokens == text.source.tokens
        np.testing.assert_array_equal(maps.layer_maps("attn_n"), text.layer_maps("attn_n"))


def test_words_of_a_translation_are_certain_although_a_piece_is_unknown(model, monkeypatch):
    target = model.task.target_dictionary
    ids = torch.tensor([target.index("we"), target.unk(), target.index("."), target.eos()])
    monkeypatch.setattr(model.forward, "search", lambda pairs, beam: {key: {"tokens": ids} for key in pairs})
    maps = model.maps("wir sind hier .")
    assert maps.ok
    assert maps.target.words.tolist() == [0, 1, 2, -1]


def test_unknown_pieces_are_of_the_words_of_the_text(model):
    source, target = model.task.source_dictionary, model.task.target_dictionary
    maps = model.maps("wir ☃☃ hier .", "we ☃ .")
    assert maps.ok
    assert maps.source.tokens == ("wir", "☃@@", "☃", "hier", ".", "</s>")
    assert maps.source.words.tolist() == [0, 1, 1, 2, 3, -1]
    ids = [source.index(t) for t in maps.source.tokens], [target.index(t) for t in maps.target.tokens]
    (hidden,) = model.maps(*([side] for side in ids))
    assert hidden.status == "unknown subwords on both sides"
    np.testing.assert_array_equal(hidden.layer_maps("attn_n"), maps.layer_maps("attn_n"))
    with pytest.raises(InputError, match=facts("sentence 0 … subwords on both")):
        extract(hidden, ExtractionOptions("attn_n", "1", setting="awo"))


def test_its_own_translation(model):
    maps = model.maps("wir sind hier .", beam=2)
    (again,) = model.maps(["wir sind hier ."], [[model.task.target_dictionary.index(t) for t in maps.target.tokens]])
    assert maps.target.tokens[-1] == "</s>"
    np.testing.assert_allclose(maps.layer_maps("attn_n"), again.layer_maps("attn_n"), atol=1e-5)
    assert abs(maps.score - again.score) < 1e-4


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", "an empty sentence: expected at least one token"),
        ([10**6], r"token ids 2 to 1000000: expected 0 to \d+"),
        ("a " * 2000, r"\d+ tokens with </s>: the model takes at most 1024"),
        *((iter(ids), ".*expected text or token ids") for ids in ([4.5], torch.tensor([4.2]), [True], [[4]], "\x1b")),
    ],
)
def test_bad_sentences_are_named(model, source, text):
    """Only whole numbers are token ids: a float would be cut to one."""
    with pytest.raises(InputError, match=rf"source\[1\]: {text}"):
        model.maps(["wir", source], ["we", "we"], max_tokens=1)


SOURCES = ["wir sind hier .", "meine damen und herren , ich danke ihnen .", "ja .", "das ist ein haus ."] * 5
TARGETS = ["we are here .", "ladies and gentlemen , i thank you .", "yes .", "this is a house ."] * 5


@pytest.mark.parametrize("max_tokens", [1, 30, 4000])
def test_a_list_gives_what_each_pair_gives(model, max_tokens):
    found = model.maps(iter(SOURCES), TARGETS, max_tokens=max_tokens)
    assert [maps.id for maps in found] == list(range(20))
    for maps, source, target in zip(found, SOURCES, TARGETS):
        alone = model.maps(source, target)
        assert (maps.source.tokens, maps.target.tokens) == (alone.source.tokens, alone.target.tokens)
        assert maps.score == pytest.approx(alone.score, abs=1e-5)
        for kind in ("attn_w", "attn_n"):
            np.testing.assert_allclose(maps.head_maps(kind), alone.head_maps(kind), rtol=1e-5, atol=1e-5)
            np.testing.assert_allclose(maps.layer_maps(kind), alone.layer_maps(kind), rtol=1e-5, atol=1e-5)


def test_words_are_those_of_the_text_whatever_the_model_knows(model):
    maps = model.maps("漢字 </s> wir", "we 漢字")
    assert list(maps.to_frame(layer=0).columns) == ["漢字", "</s>", "wir", "(null)"]
    assert list(maps.to_frame(layer=0).index) == ["we", "漢字"]


def test_threads_on_one_model_get_the_maps_of_one_thread(model):
    """Captures lie on the modules: two passes at a time gave maps of each other, some of them without an error."""
    pairs = [("wir sind hier .", "we are here ."), ("das haus ist alt .", "the house is old ."), ("ja .", "yes .")]
    works = [lambda s=s, t=t: model.maps(s, t).arrays["layer_attn_n"] for s, t in pairs]
    works += [lambda s=s: model.maps(s, beam=2).arrays["layer_attn_n"] for s, _ in pairs]
    works += [lambda s=s, t=t: model.block_maps(s, t, "encoder.self", "attn_n").layers for s, t in pairs]
    expected = [work() for work in works]
    with ThreadPoolExecutor(4) as pool:
        found = [(i, pool.submit(works[i])) for _ in range(6) for i in range(len(works))]
        for i, future in found:
            np.testing.assert_array_equal(future.result(), expected[i])


def test_axes_of_block_maps(model):
    """Rows and columns of the decoder are its inputs: </s> first."""
    source, target = ("wir", "sind", "</s>"), ("</s>", "we", "are")
    for block, rows, columns in (
        ("encoder.self", source, source),
        ("decoder.self", target, target),
        ("decoder.cross", target, source),
    ):
        maps = model.block_maps("wir sind", "we are", block, "attn_n")
        assert (maps.rows, maps.columns) == (rows, columns)
        assert maps.layers.shape == (3, 3, 3)


def test_what_a_prediction_loses_without_each_source_word(model):
    """Named as the table of a map is; without its translation a word is less likely."""
    texts = "wir sind hier , hier .", "we are here , here ."
    losses = model.deletion(*texts)
    named = model.maps(*texts).to_frame(layer=0)
    assert (list(losses.index), list(losses.columns)) == (list(named.index), list(named.columns[:-1]))
    assert losses.loc["we"].idxmax() == "wir"
    assert model.deletion(*texts, unknown=True).loc["we", "wir"] > 1


def mean_of_values(attention):
    """Each row gets the mean of the values that it sees."""

    def forward(query, value=None, attn_mask=None, **_):
        values = attention.v_proj(query if value is None else value)  # [S, B, D]
        seen = torch.ones(len(query), len(values)) if attn_mask is None else attn_mask.isfinite().float()
        weights = seen / seen.sum(1, keepdim=True)
        return attention.out_proj(torch.einsum("ts,sbd->tbd", weights, values)), None

    return forward


@torch.no_grad()
def test_losses_without_the_patterns_of_attention(model, monkeypatch):
    """A batch of padded sentences, against one sentence at a time with the mean of the values."""
    texts = ["wir sind hier .", "ja ."], ["we are here .", "yes ."]
    losses = model.uniform_losses(*texts)
    for sources, targets, tokens in ((texts[0], None, 1), (*texts, 0)):
        with pytest.raises(UsageError):
            model.uniform_losses(sources, targets, tokens)
    attentions = norm_attentions(model.models[0])

    pairs = [model._encoded(*pair) for pair in zip(*texts)]

    def mean():
        return np.concatenate([model.forward.scores({0: pair})[0] for pair in pairs]).mean()

    whole = mean()
    assert (list(losses.index), list(losses.columns)) == ([*BLOCK_TYPES], [0, 1, 2, "all"])
    assert losses.loc["decoder.cross", "all"] > 0.5
    for block, layer in itertools.product(losses.index, losses.columns):
        with monkeypatch.context() as patch:
            for attention in attentions:
                if attention.site.block == block and layer in ("all", attention.site.number):
                    patch.setattr(attention, "forward", mean_of_values(attention))
            assert losses.loc[block, layer] == pytest.approx(whole - mean(), abs=1e-4)
