"""Every kind of map in records, on a trained model: rollouts, batched, extracted."""

import numpy as np
import pytest

import fairseq_norm_plugin
from alignment_eval import commands as cli
from alignment_eval.commands import sweep as sweep_command
from alignment_eval.maps.kinds import KINDS
from alignment_eval.records import Records
from fairseq_norm_plugin.capture.layers import DECODER_CROSS, DECODER_SELF, ENCODER_SELF

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
