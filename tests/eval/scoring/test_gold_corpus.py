from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.links.files import Texts
from alignment_eval.links.formats import GoldSentence
from alignment_eval.scoring.gold_corpus import GoldCorpus, confirmed
from tests.facts import facts

NO_LINKS = GoldSentence(frozenset())


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([3], "sentence 3 has no gold … has 3 sentences … each id from 0 to 2 once"),
        ([0, 0, 0], "sentence 0 is a duplicate … each id from 0 to 2 once"),
    ],
)
def test_numbers_of_sentences(make_sentence, ids, message):
    with pytest.raises(InputError, match=facts(message)):
        list(GoldCorpus([make_sentence(id_) for id_ in ids], [NO_LINKS] * 3))


@pytest.mark.parametrize(
    ("link", "texts", "message"),
    [
        ((3, 0), None, "gold: sentence 1 (line 2) … link 3-0 … outside … 3 and 3 words"),
        ((0, 0), ((3, 3), (3, 4)), "sentence 1 (line 2) … 3 target words in the records … 4 in tgt"),
    ],
)
def test_words_that_do_not_fit(make_sentence, link, texts, message):
    """The wrong BPE mark, another text, or the other direction."""
    gold = [NO_LINKS, GoldSentence(frozenset(), frozenset({link}))]
    lengths = texts and Texts("src", np.array(texts[0]), "tgt", np.array(texts[1]))
    with pytest.raises(InputError, match=facts(message)) as caught:
        list(GoldCorpus([make_sentence(0), make_sentence(1)], gold, lengths))
    assert "--norm-subword-mark" in str(caught.value)


def test_uncertain_words_are_confirmed_by_their_number(make_sentence):
    certain = make_sentence(0)  # three words on either side
    sources, targets = replace(make_sentence(1), status="unknown source subwords"), make_sentence(2, status="long")
    both = replace(make_sentence(3), status="unknown subwords on both sides")
    texts = Texts("s", np.array([3, 3, 3, 3]), "t", np.array([3, 3, 3, 2]))
    found = [confirmed(sentence, texts).status for sentence in (certain, sources, targets, both)]
    assert found == ["ok", "ok", "long", "unknown subwords on both sides"]
