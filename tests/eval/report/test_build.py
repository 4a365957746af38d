"""What a report holds: figures, maps and links, against the other commands' routines."""

import numpy as np
import pandas as pd
import pytest

from alignment_eval.extraction.extract import extract, stacked_maps
from alignment_eval.extraction.method import ExtractionOptions, MapName
from alignment_eval.report.build import ReportOptions, System, build
from alignment_eval.report.encoding import ERROR
from alignment_eval.report.page import render
from alignment_eval.scoring.aer import score
from alignment_eval.scoring.significance import confidence
from alignment_eval.scoring.sweep import sweep
from tests.eval.report.pages import FAST, GOLD, Page


def page_of(report):
    return Page(render(report, "title", "a:b", {"model": "m"}))


@pytest.mark.parametrize(
    ("kinds", "rule"), [(("attn_w", "attn_n"), "kobayashi2020"), (("attn_w", "attnres_w", "attnres_n"), "shift-att")]
)
def test_page_holds_what_extract_and_sweep_find(corpus, kinds, rule):
    options = ReportOptions(kinds=kinds, rule=rule, resampling=FAST)
    report = build(corpus, GOLD, options)
    page = page_of(report)
    table = sweep(corpus, GOLD, options.extraction()).table
    found = pd.DataFrame([(m.kind, m.setting, m.layer, m.head, m.score.aer) for m in report.maps])
    expected = table[["kind", "setting", "layer", "head", "aer"]]
    assert found.astype(object).where(found.notna(), None).to_numpy().tolist() == (
        expected.astype(object).where(expected.notna(), None).to_numpy().tolist()
    )
    for name in ("precision", "recall"):
        values = [np.nan if (v := getattr(m.score, name)) is None else v for m in report.maps]
        np.testing.assert_array_equal(values, table[name])
    assert [m.wrong for m in report.maps] == (table["links"] - table["links_possible"]).tolist()
    assert [m.missed for m in report.maps] == (table["sure"] - table["links_sure"]).tolist()

    by_id = {sentence.id: sentence for sentence in corpus}
    assert [entry["id"] for entry in page.index["sentences"]] == [0, 1, 2, 3, 4]
    assert page.index["sentences"][1]["status"] == "too long"
    assert "s1" not in page.blocks
    links_of = [[frozenset()] * len(GOLD) for _ in report.maps]
    for place in (0, 2, 3, 4):
        entry, maps, links = page.sentence(place)
        sentence = by_id[place]
        exact = {kind: stacked_maps(sentence, kind) for kind in kinds}
        for number, m in enumerate(report.maps):
            pairs = extract(sentence, ExtractionOptions(m.kind, [MapName(m.layer, m.head)], "mean", m.setting, rule))
            assert {(int(i), int(j)) for i, j in np.argwhere(links[number])} == pairs
            links_of[number][place] = pairs
            want = exact[m.kind][sentence.layers.index(m.layer), -1 if m.head is None else m.head]
            assert np.abs(maps[number] - want).max() <= 2 * ERROR * want.max(initial=1)
        assert {tuple(pair) for pair in entry["sure"]} == GOLD[place].sure
        assert {tuple(pair) for pair in entry["sure"] + entry["possible"]} == GOLD[place].possible
        assert entry["target"]["pieces"] == sentence.target.words.tolist()
    for number, m in enumerate(report.maps):
        scored = score(links_of[number], GOLD)
        sentence_aer = [score([links_of[number][k]], [GOLD[k]]).aer for k in range(len(GOLD))]
        np.testing.assert_allclose(page.aers()[number], sentence_aer, atol=0.5e-4)
        assert m.interval == confidence(scored.per_sentence, FAST)["aer"]
        words = sum(by_id[k].target.word_count for k in (0, 2, 3, 4))
        linked = sum(len({j for _, j in pairs}) for pairs in links_of[number])
        assert m.unaligned == words - linked


def test_fewer_sentences_in_the_page_change_no_figure(corpus):
    every = build(corpus, GOLD, ReportOptions(resampling=FAST))
    some = build(corpus, GOLD, ReportOptions(resampling=FAST, max_sentences=3))
    assert [(m.score.aer, m.interval) for m in some.maps] == [(m.score.aer, m.interval) for m in every.maps]
    assert some.shown == (0, 2, 4)
    html = render(some, "t", "s", {})
    page = Page(html)
    assert [entry["id"] for entry in page.index["sentences"]] == [0, 2, 4]
    assert sorted(page.blocks) == ["aers", "index", "s0", "s1", "s2"]
    np.testing.assert_array_equal(page.aers(), page_of(every).aers()[:, [0, 2, 4]])
    assert "This page holds 3 of 5 sentences, evenly spaced over the corpus." in html
    assert "This page holds" not in render(every, "t", "s", {})


def test_systems_beside_the_maps(corpus):
    """Their scores are those of the whole corpus, sentences without maps included; their links are in the index."""
    links = {0: frozenset({(0, 0), (1, 1)}), 1: frozenset({(5, 5)}), 3: frozenset({(0, 1)})}
    systems = [System("ours", [links.get(k, frozenset()) for k in range(5)]), System("nothing", [frozenset()] * 5)]
    report = build(corpus, GOLD, ReportOptions(resampling=FAST), systems=systems)
    for system, found in zip(systems, report.systems):
        wanted = score(system.links, GOLD)
        assert found.name == system.name
        assert found.score.aer == wanted.aer
        assert found.score.counts == wanted.counts
        assert found.interval == confidence(wanted.per_sentence, FAST)["aer"]
    words = {sentence.id: sentence.target.word_count for sentence in corpus}
    assert report.systems[0].unaligned == sum(words[k] for k in (0, 2, 3, 4)) - 3
    page = page_of(report)
    assert page.index["systems"] == ["ours", "nothing"]
    assert [entry["aligned"] for entry in page.index["sentences"][:4]] == [
        [[[0, 0], [1, 1]], []],
        [[], []],  # without words in the page
        [[], []],
        [[[0, 1]], []],
    ]
