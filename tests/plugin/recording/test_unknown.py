"""What is said of tokens that the model does not know."""

from __future__ import annotations

import numpy as np

from alignment_eval.maps.sentence import SentenceSide
from fairseq_norm_plugin.recording.unknown import UnknownTokens
from fairseq_norm_plugin.text.tokens import Spelling


def spelling(tokens, unknown=0, certain=True):
    return Spelling(SentenceSide(("x",) * tokens, np.arange(tokens, dtype=np.int32)), unknown, certain)


def warnings_of(caplog, *pairs):
    count = UnknownTokens("--a", "--b")
    for source, target in pairs:
        count.add(source, target)
    count.warn()
    return [record.getMessage() for record in caplog.records]


def test_a_few_are_counted_by_side(caplog):
    (said,) = warnings_of(caplog, (spelling(60), spelling(40)), (spelling(5), spelling(60, unknown=2)))
    assert said == "2 of 100 target tokens (2.0 %) are <unk>"


def test_sentences_of_uncertain_words_are_counted_with_advice(caplog):
    uncertain = spelling(100, unknown=1, certain=False)
    *_, said = warnings_of(caplog, (uncertain, uncertain), (spelling(9), spelling(9)), (uncertain, spelling(9)))
    assert said.startswith("2 of 3 sentences (66.7 %) get no links")
    assert said.endswith("(--a, --b)")
    caplog.clear()
    *_, said = warnings_of(caplog, (spelling(9), uncertain))
    assert said.endswith("(--b)")
