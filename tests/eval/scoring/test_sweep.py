import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from alignment_eval.commands.sweep import COLUMNS, configurations, sweep
from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.method import ExtractionOptions, MapName
from alignment_eval.links.sets import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.scoring.aer import score
from tests.facts import facts

ALL = (["attn_w", "attn_n"], ["awo", "awi"], ["kobayashi2020", "shift-att"])


def corpus(make_sentence):
    """Sentences out of order, one skipped, one without a word; layers 1 and 4."""
    sentences = [
        make_sentence(3, source="<de> a@@ b@@ c d e@@ f </s>", target="x@@ y z . </s>"),
        make_sentence(0),
        make_sentence(4, source="</s>", target="</s>"),
        make_sentence(2, status="skipped: too long"),
        make_sentence(1, source="a b c </s>", target="x@@ y@@ z u v </s>"),
    ]
    return [replace(s, layers=(1, 4)) for s in sentences]


def random_gold(sentences, seed=0):
    rng = np.random.default_rng(seed)
    gold = {}
    for s in sentences:
        pairs = list(itertools.product(range(s.source.word_count or 3), range(s.target.word_count or 3)))
        pairs = pairs if s.source.word_count or not s.ok else []
        kinds = rng.integers(0, 4, len(pairs))
        gold[s.id] = GoldSentence(
            frozenset(p for p, k in zip(pairs, kinds) if k == 0), frozenset(p for p, k in zip(pairs, kinds) if k == 1)
        )
    return [gold[id_] for id_ in sorted(gold)]


@pytest.mark.parametrize("final", [False, True])
def test_every_row_is_extract_and_score(make_sentence, final):
    sentences = corpus(make_sentence)
    gold = random_gold(sentences)
    result = sweep(sentences, gold, configurations(*ALL, final_punctuation=final))
    table = result.table
    assert tuple(table.columns) == COLUMNS
    assert result.skipped == {2: "skipped: too long"}
    assert len(table) == 2 * 2 * 3 * 2 * 4  # kinds, settings, (rule, null), layers, heads and layer
    assert not table.duplicated(["kind", "layer", "head", "setting", "rule", "null"]).any()
    for row in table.itertuples():
        head = None if pd.isna(row.head) else int(row.head)
        assert row.level == ("layer" if head is None else "head")
        maps = [MapName(row.layer, head)]
        options = ExtractionOptions(row.kind, maps, "mean", row.setting, row.rule, row.null, final)
        hypotheses = [extract(s, options) if s.ok else frozenset() for s in sorted(sentences, key=lambda s: s.id)]
        expected = score(hypotheses, gold)
        assert row.aer == expected.aer
        assert row.precision == expected.precision
        assert row.recall == expected.recall
        counts = [int(values) for values in expected.counts]
        assert [row.links, row.sure, row.links_sure, row.links_possible] == counts


def test_configurations_of_every_null():
    made = [(o.kind, o.setting, o.rule, o.null) for o in configurations(["attn_w"], ["awi"], ALL[2])]
    assert made == [
        ("attn_w", "awi", "kobayashi2020", "allow"),
        ("attn_w", "awi", "kobayashi2020", "mask"),
        ("attn_w", "awi", "shift-att", "mask"),
    ]
    with pytest.raises(UsageError, match=facts("unknown rule 'x' … one of kobayashi2020, shift-att")):
        configurations(["attn_w"], ["awi"], ["x"])


def test_a_head_without_links_has_no_precision(make_side):
    weights = np.array([[[[0, 1], [0, 1]], [[1, 0], [1, 0]]]], dtype=np.float32)  # head 0 looks at </s> only
    s = SentenceMaps(0, make_side("a </s>"), make_side("x </s>"), (0,), arrays={"head_attn_w": weights})
    gold = [GoldSentence(frozenset({(0, 0)}))]
    table = sweep([s], gold, configurations(["attn_w"], ["awi"], ["kobayashi2020"])).table
    rows = table[table["null"] == "allow"].set_index("head")
    assert rows.loc[0, ["aer", "recall", "links"]].tolist() == [1, 0, 0]
    assert np.isnan(rows.loc[0, "precision"])
    assert rows.loc[1, ["aer", "precision", "recall", "links"]].tolist() == [0, 1, 1, 1]
