"""What callers may give as sentences, and what they are told of the rest."""

import numpy as np
import pandas as pd
import pytest
import torch

from alignment_eval.errors import InputError
from fairseq_norm_plugin.model.sentences import given_pairs, is_one_pair

ONE = ["wir sind hier .", [4, 5, 6], (4, 5), np.array([4, 5]), torch.tensor([4, 5]), "", range(4, 9)]
SEVERAL = [["wir", "sie"], ("wir",), [[4, 5], [6]], [], np.array([[4, 5]]), pd.Series(["wir"]), iter(["wir"])]


@pytest.mark.parametrize("source", [*ONE, *SEVERAL], ids=lambda value: type(value).__name__)
def test_one_sentence_or_several(source):
    is_one = any(source is sentence for sentence in ONE)
    assert is_one_pair(source, None) == is_one
    assert is_one_pair(source, "we" if is_one else ["we"]) == is_one
    assert not is_one or is_one_pair(source, [])  # an empty target, which the model then refuses


@pytest.mark.parametrize(
    "given_", [None, 5, 1.5, b"wir", {"wir": "we"}, {"wir"}, np.array(5), torch.tensor(5)], ids=repr
)
def test_what_is_no_sentence_is_refused(given_):
    with pytest.raises(InputError, match=r"source: .*expected text or token ids"):
        is_one_pair(given_, None)
    if given_ is not None:
        with pytest.raises(InputError, match=r"target: "):
            is_one_pair("wir", given_)
    with pytest.raises(InputError, match=r"source\[1\]: .*expected text or token ids"):
        given_pairs(["wir", given_], None)
    with pytest.raises(InputError, match=r"target\[1\]: .*expected text or token ids"):
        given_pairs(["wir", "sie"], ["we", given_])


@pytest.mark.parametrize(
    ("source", "target", "text"),
    [
        (["a", "b"], ["x"], "target ends after 1 sentences"),
        ([], None, "an empty list"),
        (["a", " \t\n"], ["x", "y"], r"source\[1\]: an empty sentence"),
        (["a", ["b", "c"]], ["x", "y"], r"source\[1\]: is a list of sentences"),
    ],
)
def test_lists_are_checked_before_the_first_pair(source, target, text):
    with pytest.raises(InputError, match=text):
        given_pairs(source, target)
