import json

import numpy as np
import pandas as pd
import pytest

from alignment_eval.commands.sweep import configurations, sweep
from alignment_eval.links.sets import GoldSentence
from alignment_eval.records.store import Records
from tests.facts import says

GOLD = [
    GoldSentence(frozenset({(0, 0), (2, 2)}), frozenset({(1, 1)})),
    GoldSentence(frozenset({(5, 5)})),  # of the skipped sentence
    GoldSentence(frozenset()),
    GoldSentence(frozenset({(0, 1)})),
]


def talp(path, gold=GOLD):
    """Write 1-based gold."""
    marked = ((f"{i + 1}{'-' if (i, j) in g.sure else 'p'}{j + 1}" for i, j in sorted(g.possible)) for g in gold)
    path.write_text("".join(f"{' '.join(line)}\n" for line in marked), encoding="utf-8")
    return path


@pytest.fixture
def inputs(tmp_path, make_sentence, make_records):
    """Records and gold of four sentences."""
    sentences = [make_sentence(3), make_sentence(0), make_sentence(2), make_sentence(1, status="too long")]
    return make_records(tmp_path / "run", sentences, shards=2), talp(tmp_path / "gold.talp")


def test_sweep_end_to_end(inputs, tmp_path, align_eval):
    records, gold = inputs
    out = tmp_path / "deep" / "sweep"
    done = align_eval("sweep", records, "--gold", gold, "--gold-base", "1", "--out", out)
    assert done.returncode == 0, done.stderr

    everything = configurations(["attn_w", "attn_n"], ["awo", "awi"], ["kobayashi2020", "shift-att"])
    expected = sweep(Records(records).best(), GOLD, everything).table
    pd.testing.assert_frame_equal(
        pd.read_csv(out / "sweep.csv", float_precision="round_trip").astype({"head": "Int64"}),
        expected,
        check_dtype=False,
        check_exact=True,
    )
    stems = ["summary", *(f"heads-{o.kind}-{o.setting}-{o.rule}-{o.null}" for o in everything)]
    figures = [f"{stem}.{ending}" for stem in stems for ending in ("png", "svg")]
    assert sorted(path.name for path in out.iterdir()) == sorted(["sweep.csv", "sweep.json", *figures])
    assert [path.name for path in out.parent.iterdir()] == ["sweep"]

    content = json.loads((out / "sweep.json").read_text(encoding="utf-8"))
    assert content["skipped"] == {"1": "too long"}
    assert content["sentences"] == 4
    assert "oracle" in content["note"]
    assert len(content["rows"]) == len(expected)
    assert content["rows"][0]["head"] == 0
    assert content["rows"][3]["head"] is None
    np.testing.assert_array_equal([row["aer"] for row in content["rows"]], expected["aer"])

    warning, signature = done.stderr.splitlines()  # and no progress bar
    assert warning == "warning: 1 of 4 sentences cannot be aligned, each counts as an empty hypothesis (1 too long)"
    assert signature == content["signature"]
    assert signature.startswith("records:9e5d467ff709ca60|gold:")
    assert "|gold_base:1|" in signature
    assert "|kinds:attn_w,attn_n|settings:awo,awi|rules:kobayashi2020,shift-att|final_punctuation:no|" in signature

    blocks = done.stdout.split("\n\n")
    assert [block.splitlines()[0] for block in blocks[:4]] == [
        "AER %, 4 sentences, rule kobayashi2020, null allow",
        "AER %, 4 sentences, rule kobayashi2020, null mask",
        "AER %, 4 sentences, rule shift-att, null mask",
        "The 10 lowest AERs",
    ]
    lowest = [line.split()[-3] for line in blocks[3].splitlines()[2:]]
    assert lowest == [f"{100 * aer:.2f}" for aer in sorted(expected["aer"])[:10]]


def test_bad_input(inputs, tmp_path, call):
    path = talp(inputs[1], GOLD[:3])
    got, printed, messages = call("sweep", inputs[0], "--gold", path, "--gold-base", 1, "--out", tmp_path / "out")
    assert (got, printed) == (1, "")
    assert says(messages, "gold.talp: 3 sentences, but … run has records of 4")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["gold.talp", "run"]


def test_maps_of_translations_cannot_be_scored_against_gold_of_references(tmp_path, make_sentence, make_records, call):
    signature = {"generation": {"beam": 5, "score_reference": False}}
    records = make_records(tmp_path / "run", [make_sentence(i) for i in range(4)], signature=signature)
    status, out, err = call(
        "sweep", records, "--gold", talp(tmp_path / "g.talp"), "--gold-base", 1, "--out", tmp_path / "s"
    )
    assert (status, out) == (1, "")
    assert "maps of the model's own translations" in err
    assert "record with --score-reference" in err


def test_rules_with_values(inputs, tmp_path, call):
    records, gold = inputs
    out = tmp_path / "out"
    given = ("--gold", gold, "--gold-base", "1", "--kinds", "attn_w", "--settings", "awi", "--out", out)
    status, printed, signature = call("sweep", records, *given, "--rules", "threshold=0.2,threshold=.20,top-k=2")
    assert status == 0
    assert "|rules:threshold=0.2,top-k=2|" in signature
    assert "rule threshold=0.2, null allow" in printed
    expected = sweep(Records(records).best(), GOLD, configurations(["attn_w"], ["awi"], ["threshold=0.2", "top-k=2"]))
    table = pd.read_csv(out / "sweep.csv", float_precision="round_trip")
    assert table["aer"].tolist() == expected.table["aer"].tolist()
    assert (out / "heads-attn_w-awi-top-k=2-mask.svg").exists()
