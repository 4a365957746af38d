"""Every kind of map on a trained model; a new one is a row of the table and its functions, and is found everywhere."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fairseq_norm_plugin
from alignment_eval import commands as cli
from alignment_eval.commands import sweep as sweep_command
from alignment_eval.figures.style import kind_look, kind_name
from alignment_eval.maps.sentence import KINDS, MapKind, block_kinds, mixing_kinds, quantities
from alignment_eval.records import Records
from fairseq_norm_plugin.analyze.cli import main as analyze
from fairseq_norm_plugin.capture.layers import DECODER_CROSS, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.formulas import kinds as functions

MAPS = Path(__file__).resolve().parents[2] / "docs/maps.md"
NEW = MapKind("attn_new", "new maps", ("layer_attn_new",))
MIXED = MapKind("attnres_new", "new mixing", ("layer_attnres_new",), mixing=True)


def undocumented():
    """Kinds without a row in the table of docs/maps.md."""
    rows = [line for line in MAPS.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    return set(KINDS) - named


def test_the_table_says_what_is_there():
    assert undocumented() == set()
    assert tuple(functions.LAYER_MAPS) == block_kinds()
    assert tuple(functions.HEAD_MAPS) == tuple(name for name, kind in KINDS.items() if kind.heads)
    assert tuple(functions.MIXING_RATIOS) == mixing_kinds()
    for kind in KINDS.values():
        assert kind.rollout is None or kind.rollout in block_kinds()
    looks = [tuple(kind_look(kind).values()) for kind in mixing_kinds()]
    assert len(set(looks)) == len(looks)


@pytest.fixture
def new(monkeypatch):
    for kind in (NEW, MIXED):
        monkeypatch.setitem(KINDS, kind.name, kind)
        monkeypatch.setitem(functions.LAYER_MAPS, kind.name, lambda block: block.alpha.mean(1))
    monkeypatch.setitem(functions.MIXING_RATIOS, MIXED.name, lambda block: block.alpha[:, 0, :, 0])


@pytest.mark.usefixtures("new")
def test_a_new_kind_is_found_everywhere(norm, tmp_path, capsys):
    for command in ("sweep", "plot", "report"):
        with pytest.raises(SystemExit):
            cli.main([command, "--help"])
        assert NEW.name in capsys.readouterr().out, command
    assert undocumented() == {NEW.name, MIXED.name}
    assert kind_name(NEW.name) == "new maps"
    assert "layer_attn_new" in quantities()

    norm("--score-reference", "--norm-record-kinds", "attn_w,attn_new", "--norm-records", tmp_path / "r")
    (first, *_) = Records(tmp_path / "r")
    assert first.kinds == ("attn_w", "attnres_w", "attn_new")
    np.testing.assert_allclose(first.layer_maps("attn_new"), first.layer_maps("attn_w"), rtol=1e-5)
    (tmp_path / "gold").write_text("0-0\n" * 12)
    records = [str(tmp_path / "r"), "--gold", str(tmp_path / "gold"), "--gold-base", "0"]
    assert cli.main(["sweep", *records, "-o", str(tmp_path / "s"), "--figure-formats", "svg"]) == 0
    assert NEW.name in (tmp_path / "s/sweep.csv").read_text()
    assert "AWO, new maps" in (tmp_path / "s/summary.svg").read_text()
    assert cli.main(["plot", records[0], "--sentence", "0", "--kinds", "attn_new", "-o", str(tmp_path / "p.svg")]) == 0
    assert "new maps" in (tmp_path / "p.svg").read_text()


@pytest.mark.usefixtures("new")
def test_a_new_mixing_kind_is_analysed_and_drawn(data, checkpoint, tmp_path):
    kinds = ",".join(mixing_kinds())
    words = [data, "--path", checkpoint, "-o", tmp_path / "a", "--cpu", "--mixing-kinds", kinds]
    assert analyze([str(word) for word in [*words, "--gen-subset", "valid", "--figure-formats", "svg"]]) == 0
    mixing = pd.read_csv(tmp_path / "a/mixing.csv")
    assert set(mixing["kind"]) == set(mixing_kinds())
    assert "new mixing" in (tmp_path / "a/mixing-decoder-cross.svg").read_text()


ALL = ("--norm-record-kinds", ",".join(KINDS))
SCORE = ("--score-reference", *ALL)


def by_id(directory):
    return {sentence.id: sentence for sentence in Records(directory)}


@pytest.fixture(scope="module")
def records(norm, tmp_path_factory):
    directory = tmp_path_factory.mktemp("kinds") / "r"
    norm(*SCORE, "--norm-records", directory)
    return directory


def slow_rollout(model, ids, kind):
    encoder, decoder, cross = (
        model.block_maps(*ids, block, kind).layers.astype(float)
        for block in (ENCODER_SELF, DECODER_SELF, DECODER_CROSS)
    )
    through = np.eye(encoder.shape[1])
    for map_ in encoder:
        through = map_ @ through
    source = np.zeros(cross[0][:, :-1].shape)
    layers = []
    for own, map_ in zip(decoder, cross):
        source = map_[:, :-1] @ through + map_[:, -1:] * (own @ source)
        layers.append(source)
    return np.stack(layers)


@pytest.mark.parametrize(("kind", "of"), [("rollout_w", "attnres_w"), ("alti_rollout", "alti")])
def test_rollouts_are_those_of_the_block_maps(records, data, checkpoint, kind, of):
    model = fairseq_norm_plugin.load(checkpoint, data, bpe="none")
    found = by_id(records)
    dictionary = model.task.source_dictionary
    for sentence in [found[0], found[5]]:
        ids = [[dictionary.index(t) for t in side.tokens] for side in (sentence.source, sentence.target)]
        expected = slow_rollout(model, ids, of)
        np.testing.assert_allclose(sentence.layer_maps(kind), expected, rtol=1e-4, atol=1e-5)


def test_align_eval_understands_every_kind(norm, records, tmp_path, capsys, monkeypatch):
    hypotheses = {}
    for kind in KINDS:
        words = ["extract", records, "--kind", kind, "--heads", 1, "--setting", "awo", "--rule", "kobayashi2020"]
        assert cli.main([str(word) for word in words]) == 0
        hypotheses[kind] = capsys.readouterr().out
        assert len(hypotheses[kind].splitlines()) == 12
    assert hypotheses["attnres_n"] == hypotheses["attn_n"]  # the residual is no source column
    assert hypotheses["attnres_w"] == hypotheses["attn_w"]
    options = ("--norm-map", "ffresln_n", "--norm-layer", 1, "--norm-alignments", tmp_path / "a")
    norm("--score-reference", *options)
    assert "recording ffresln_n takes long" in capsys.readouterr().err
    assert (tmp_path / "a").read_text() == hypotheses["ffresln_n"]
    (tmp_path / "gold").write_text(hypotheses["attn_n"])
    words = ["sweep", records, "--gold", tmp_path / "gold", "--gold-base", 0]
    monkeypatch.setattr(sweep_command, "save_heatmaps", lambda *_: None)  # seconds of drawing
    code = cli.main([str(word) for word in [*words, "-o", tmp_path / "s"]])
    output = capsys.readouterr()
    assert code == 0, output.err
    assert "AWO ffresln_n" in output.out
