import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.logging import metrics
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.errors import InputError
from alignment_eval.extraction.method import MapName, MapNames
from fairseq_norm_plugin.hooks.criterion import GuidedAlignmentCriterion, check_links, map_loss
from fairseq_norm_plugin.text.tokens import Vocabulary
from tests.facts import facts

B, H, T, S = 2, 3, 4, 5
# (sentence, source, target): source 1 and 2 of target 0, source 4 of target 2, source 0 of target 1
LINKS = [(0, 1, 0), (0, 2, 0), (0, 4, 2), (1, 0, 1)]
SHARES = [0.5, 0.5, 1.0, 1.0]


@pytest.fixture
def weights():
    return torch.softmax(torch.randn(B, H, T, S, dtype=torch.float64, generator=torch.manual_seed(1)), dim=-1)


@pytest.fixture
def sample():
    return {
        "alignments": torch.tensor([[i, b * T + j] for b, i, j in LINKS]),
        "align_weights": torch.tensor(SHARES, dtype=torch.float64),
    }


@pytest.mark.parametrize(("name", "down"), [(MapName(0, 1, "awi"), 1), (MapName(0, 1), 1), (MapName(0, 1, "awo"), 0)])
def test_the_loss_is_that_of_the_row_of_the_setting(weights, sample, name, down):
    expected = -sum(w * math.log(weights[b, 1, j + down, i]) for (b, i, j), w in zip(LINKS, SHARES))
    assert map_loss(weights, name, sample).item() == pytest.approx(expected, rel=1e-12)


def test_a_whole_layer_is_the_mean_of_its_heads(weights, sample):
    mean = weights.mean(dim=1, keepdim=True)
    assert map_loss(weights, MapName(0), sample) == map_loss(mean, MapName(0, 0), sample)


def test_weights_of_zero_give_a_finite_loss(weights, sample):
    none = torch.zeros_like(weights).requires_grad_()
    loss = map_loss(none, MapName(0, 0), sample)
    loss.backward()
    assert loss.item() == pytest.approx(-math.log(1e-9) * sum(SHARES))
    assert torch.isfinite(none.grad).all()


def test_the_losses_of_several_maps_are_averaged(weights, sample):
    names, layers = MapNames("0.1:awi,1.0:awo"), [weights.requires_grad_(), weights.flip(1)]
    criterion = SimpleNamespace(_maps=names, _guided=SimpleNamespace(layers=(0, 1), take=lambda: layers))
    losses = [map_loss(of, name, sample).item() for of, name in zip(layers, names)]
    found = GuidedAlignmentCriterion.compute_alignment_loss(criterion, sample, None)
    assert found.item() == pytest.approx(sum(losses) / 2)


@pytest.mark.parametrize("training", [True, False])
def test_batches_with_and_without_links_log_the_same_values(build, make_sample, tgt_dict, training):
    """Else processes of one training would wait for each other for ever."""
    criterion = GuidedAlignmentCriterion(SimpleNamespace(target_dictionary=tgt_dict), True, 0.1, 1.0, "0.1")
    sample, model = {"ntokens": 11, **make_sample([(7, 5), (3, 6)])}, build().train(training)
    links = {"alignments": torch.tensor([[0, 0], [1, 2]]), "align_weights": torch.ones(2)}
    linked, free = (criterion(model, batch)[2] for batch in ({**sample, **links}, sample))
    assert list(linked) == list(free)
    assert linked["alignment_loss"] > free["alignment_loss"] == 0
    with metrics.aggregate() as logged:
        criterion.reduce_metrics([free])
    assert ("alignment_loss" in logged.get_smoothed_values()) == training


# one line a pair: pieces of the source, of the target, and the links that fit them
PAIRS = [("a@@ b c", "x y@@ z", "0-0 1-1 2-2"), ("a b@@ c", "y@@ z x", "0-2 2-1")] * 3


def data_of(lines):
    """The pairs of PAIRS with the links of ``lines``, as fairseq loads them."""
    dictionary = Dictionary()
    sides = [[dictionary.encode_line(pair[side], add_if_not_exist=True).long() for pair in PAIRS] for side in range(2)]
    links = [torch.tensor([[*map(int, link.split("-"))] for link in line.split()]).flatten() for line in lines]
    sizes = [np.array([len(ids) for ids in side]) for side in sides]
    data = SimpleNamespace(src=sides[0], tgt=sides[1], src_sizes=sizes[0], tgt_sizes=sizes[1], align_dataset=links)
    return data, [Vocabulary(dictionary, "@@", {dictionary.eos()})] * 2


def from_one(line):
    return " ".join(f"{int(i) + 1}-{int(j) + 1}" for i, j in (link.split("-") for link in line.split()))


FITTING = [links for _, _, links in PAIRS]


@pytest.mark.parametrize("lines", [FITTING, ["", *FITTING[1:]]])
def test_links_that_fit_their_text_are_taken(lines):
    data, vocabularies = data_of(lines)
    check_links(data, "train", vocabularies)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([""] * 6, "train: no line has a link"),
        (FITTING[1:], "train … links of 5 lines … text of 6"),
        ([*FITTING, "0-0"], "train … links of 7 lines … text of 6"),
        ([from_one(line) for line in FITTING], "train … count from 1 … --from-base 1"),
        ([from_one("0-0 1-1")] * len(FITTING), "train … count from 1 … --from-base 1"),  # all of them inside
        ([*FITTING[:3], "0-3", *FITTING[4:]], "train, line 4 … 0 and 3 … source has 3 and the target 3; 1 of 6"),
        (["0-0 1-1", "0-1 1-0"] * 3, "train … count words … in subwords … --subwords"),
    ],
)
def test_links_that_do_not_fit_their_text_are_refused(lines, message):
    data, vocabularies = data_of(lines)
    with pytest.raises(InputError, match=facts(message)):
        check_links(data, "train", vocabularies)


SIZES = st.lists(st.tuples(st.integers(2, 6), st.integers(2, 6)), min_size=5, max_size=9)


@given(SIZES, st.data())
def test_no_links_that_count_from_one_or_of_another_text_train_without_a_word(sizes, data):
    """Of any text whose links begin at the first token and end at the last one."""
    dictionary = Dictionary()
    sides = [[dictionary.encode_line("w " * size[n], add_if_not_exist=True).long() for size in sizes] for n in (0, 1)]
    links = [[(0, 0), (source - 1, target - 1)] for source, target in sizes]

    def checked(made):
        found = [torch.tensor(of_pair).flatten() for of_pair in made]
        lengths = [np.array([len(ids) for ids in side]) for side in sides]
        text = SimpleNamespace(src=sides[0], tgt=sides[1], src_sizes=lengths[0], tgt_sizes=lengths[1])
        text.align_dataset = found
        check_links(text, "train", [Vocabulary(dictionary, "@@", {dictionary.eos()})] * 2)

    checked(links)
    from_one = [[(i + 1, j + 1) for i, j in of_pair] for of_pair in links]
    shifted = links[1:] + links[:1]
    bad = [from_one, links[1:], [*links, links[0]]]
    if any(a[0] > b[0] or a[1] > b[1] for a, b in zip(sizes[1:] + sizes[:1], sizes)):
        bad.append(shifted)
    with pytest.raises(InputError):
        checked(data.draw(st.sampled_from(bad)))
