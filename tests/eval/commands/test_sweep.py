import itertools
import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from alignment_eval.commands.sweep import configurations, save_heatmaps, sweep
from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.method import ExtractionOptions, MapName
from alignment_eval.figures.style import DEFAULT
from alignment_eval.links.formats import GoldSentence
from alignment_eval.records import Records
from alignment_eval.scoring.aer import score
from tests.eval.figures.pages import GOLD as OF_FIVE
from tests.facts import says

ALL = (["attn_w", "attn_n"], ["awo", "awi"], ["kobayashi2020", "shift-att"])
GOLD = OF_FIVE[:4]


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
        gold[s.id] = GoldSentence(*(frozenset(p for p, k in zip(pairs, kinds) if k == kind) for kind in (0, 1)))
    return [gold[id_] for id_ in sorted(gold)]


@pytest.mark.parametrize("final", [False, True])
def test_every_row_is_extract_and_score(make_sentence, final):
    sentences = corpus(make_sentence)
    gold = random_gold(sentences)
    table, skipped = sweep(sentences, gold, configurations(*ALL, final_punctuation=final))
    assert skipped == {2: "skipped: too long"}
    assert len(table) == 2 * 2 * 3 * 2 * 4  # kinds, settings, (rule, null), layers, heads and layer
    assert not table.duplicated(["kind", "layer", "head", "setting", "rule", "null"]).any()
    for row in table.itertuples():
        head = None if pd.isna(row.head) else int(row.head)
        assert row.level == ("layer" if head is None else "head")
        maps = [MapName(row.layer, head)]
        options = ExtractionOptions(row.kind, maps, "mean", row.setting, row.rule, row.null, final)
        hypotheses = [extract(s, options) if s.ok else frozenset() for s in sorted(sentences, key=lambda s: s.id)]
        expected = score(hypotheses, gold)
        assert (row.aer, row.precision, row.recall) == (expected.aer, expected.precision, expected.recall)
        assert [row.links, row.sure, row.links_sure, row.links_possible] == list(map(int, expected.counts))


@pytest.fixture
def stated(tmp_path, make_sentence, make_records):
    """Records and gold, which counts from 1, of four sentences."""
    sentences = [make_sentence(3), make_sentence(0), make_sentence(2), make_sentence(1, status="too long")]
    make_records(tmp_path / "run", sentences, shards=2)
    marked = ((f"{i + 1}{'-' if (i, j) in g.sure else 'p'}{j + 1}" for i, j in sorted(g.possible)) for g in GOLD)
    (tmp_path / "gold.talp").write_text("".join(f"{' '.join(line)}\n" for line in marked), encoding="utf-8")
    return (tmp_path / "run", "--gold", tmp_path / "gold.talp", "--gold-base", 1, "-o", tmp_path / "out")


def test_sweep_end_to_end(stated, tmp_path, align_eval):
    out = tmp_path / "deep" / "sweep"
    done = align_eval("sweep", *stated[:-1], out)
    assert done.returncode == 0, done.stderr

    everything = configurations(*ALL)
    expected = sweep(Records(stated[0]).best(), GOLD, everything)[0]
    pd.testing.assert_frame_equal(
        pd.read_csv(out / "sweep.csv", float_precision="round_trip").astype({"head": "Int64"}),
        expected,
        check_dtype=False,
        check_exact=True,
    )
    stems = ["summary", *(f"heads-{o.kind}-{o.setting}-{o.rule}-{o.null}" for o in everything)]
    figures = [f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")]
    assert sorted(path.name for path in out.iterdir()) == sorted(["sweep.csv", "sweep.json", *figures])

    content = json.loads((out / "sweep.json").read_text(encoding="utf-8"))
    assert (content["skipped"], content["sentences"]) == ({"1": "too long"}, 4)
    assert "oracle" in content["note"]
    assert [row["head"] for row in content["rows"][:4]] == [0, 1, 2, None]
    np.testing.assert_array_equal([row["aer"] for row in content["rows"]], expected["aer"])

    warning, signature = done.stderr.splitlines()  # and no progress bar
    assert says(warning, "1 of 4 sentences cannot be aligned … 1 too long")
    assert signature == content["signature"]
    assert signature.startswith("records:9e5d467ff709ca60|gold:")
    assert "|gold_base:1|" in signature
    assert "|kinds:attn_w,attn_n|settings:awo,awi|rules:kobayashi2020,shift-att|final_punctuation:no|" in signature
    layers = expected.query("level == 'layer' and rule == 'kobayashi2020' and null == 'allow'")["aer"]
    assert set(re.findall(r"([\d.]+)\*", done.stdout.split("\n\n")[0])) == {f"{100 * layers.min():.2f}"}
    ranked = done.stdout.split("\n\n")[3].splitlines()
    assert ranked[0] == "The 10 lowest AERs"
    lowest = [line.split()[-3] for line in ranked[2:]]
    assert lowest == [f"{100 * aer:.2f}" for aer in sorted(expected["aer"])[:10]]


def test_gold_of_other_sentences(stated, tmp_path, make_sentence, make_records, call):
    """Of another text, or of references where the maps are of translations."""
    signature = {"generation": {"beam": 5, "score_reference": False}}
    records = make_records(tmp_path / "own", [make_sentence(i) for i in range(4)], signature=signature)
    _, _, err = call("sweep", records, *stated[1:])
    assert says(err, "maps of the model's own translations … record with --score-reference")
    stated[2].write_text("1-1\n\n\n")
    status, out, err = call("sweep", *stated)
    assert (status, out) == (1, "")
    assert says(err, "gold.talp has 3 sentences, but … run has 4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.talp", "own", "run"]


# ---- figures


def heads_and_layers():
    """Two configurations of layers 2 and 5 with three heads; AER 0.10, 0.11, …, that of whole layers 0.99."""
    rows = []
    aer = iter(np.arange(0.10, 0.30, 0.01))
    for setting, layer, head in itertools.product(("awo", "awi"), (2, 5), (0, 1, 2, None)):
        names = {"kind": "attn_n", "setting": setting, "rule": "kobayashi2020", "null": "mask", "layer": layer}
        level, value = ("layer", 0.99) if head is None else ("head", next(aer))
        rows.append({**names, "head": head, "level": level, "aer": value})
    return pd.DataFrame(rows).astype({"head": "Int64"})


def test_one_figure_a_configuration_and_a_summary(tmp_path):
    save_heatmaps(heads_and_layers(), tmp_path, DEFAULT, ("png", "svg"))
    stems = ["summary", "heads-attn_n-awo-kobayashi2020-mask", "heads-attn_n-awi-kobayashi2020-mask"]
    names = {f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")}
    assert {path.name for path in tmp_path.iterdir()} == names
    svg = (tmp_path / f"{stems[2]}.svg").read_text(encoding="utf-8")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    heading = "Heads: norms, AWI; rule kobayashi2020, null masked. Lowest: 16.0, layer 2, head 0"
    assert heading in " ".join(shown)
    assert {"layer 2", "layer 5", "head", "AER %"} <= set(shown)
    cells = [text for text in shown if re.fullmatch(r"\d\d\.\d", text)]
    assert cells == ["16.0", "17.0", "18.0", "19.0", "20.0", "21.0"]  # no 99.0: whole layers are left out


def test_sorted_heads_stand_by_their_rank(tmp_path):
    table = heads_and_layers().assign(aer=lambda rows: 1 - rows["aer"])
    save_heatmaps(table, tmp_path, DEFAULT, ("svg",), sort_heads=True)
    svg = (tmp_path / "heads-attn_n-awo-kobayashi2020-mask.svg").read_text(encoding="utf-8")
    shown = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    assert "rank of head" in shown
    assert [text for text in shown if re.fullmatch(r"\d\d\.\d", text)] == [
        "88.0",
        "89.0",
        "90.0",
        "85.0",
        "86.0",
        "87.0",
    ]
