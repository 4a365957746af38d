"""Marian models that cannot be converted are refused in one sentence, and nothing is written."""

import json

import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from alignment_eval.profiles.profile import read_profile
from fairseq_norm_plugin.convert.cli import main
from fairseq_norm_plugin.convert.translation import convert
from fairseq_norm_plugin.hooks.models.marian import sinusoids
from fairseq_norm_plugin.recording.identity import model_hash
from tests import marian
from tests.facts import facts, says

safetensors = pytest.importorskip("safetensors.torch")


def converted(tmp_path, config=None, weights=None, tokens=()):
    marian.save(tmp_path / "model", config or marian.config(), weights, tokens)
    convert(tmp_path / "model", tmp_path / "out")
    return tmp_path / "out"


def test_what_is_written(tmp_path, capsys):
    marian.save(tmp_path / "model", marian.config())
    assert main(["translation", str(tmp_path / "model"), str(tmp_path / "out"), "-s", "deu", "-t", "eng"]) == 0
    out = tmp_path / "out"
    names = {"checkpoint.pt", "upper-layers.align.json", "dict.deu.txt", "dict.eng.txt", "source.spm", "target.spm"}
    assert {path.name for path in out.iterdir()} == names
    model = fairseq_norm_plugin.load(out / "checkpoint.pt", out, "deu", "eng")
    profile = read_profile(out / "upper-layers.align.json", model_hash(model.models))
    assert (profile.chosen_by, profile.pairs) == ("upper-layers", 0)
    assert str(profile.maps.heads) == "1,2"
    assert main(["translation", str(tmp_path / "model"), str(out)]) == 1
    assert "out: already exists" in capsys.readouterr().err
    assert main(["translation", str(tmp_path / "model"), str(out), "--overwrite"]) == 0
    assert (out / "dict.de.txt").exists()
    assert not (out / "dict.deu.txt").exists()


def test_tokens_that_fairseq_has_and_marian_may_have(tmp_path):
    """``<s>`` of a vocabulary is fairseq's; a model without one never predicts it."""
    config = marian.config()
    tokens = [*marian.vocabulary(39, 38), "<s>"]
    config.update(pad_token_id=38, decoder_start_token_id=38)
    weights = marian.tensors(config)
    out = converted(tmp_path, config, weights, [tokens, tokens])
    projection = fairseq_norm_plugin.load(out / "checkpoint.pt", out, "de", "en").models[0].decoder.output_projection
    assert len(projection.bias) == 40
    assert torch.equal(projection.weight[0], weights["model.shared.weight"][39])
    assert projection.bias[0] == weights["final_logits_bias"][0, 39]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [("swish", "swish"), ("silu", "swish"), ("relu", "relu"), ("gelu_new", "gelu_accurate"), (None, "gelu")],
)
def test_activations(tmp_path, theirs, ours):
    """Transformers' default is gelu."""
    config = marian.config(activation_function=theirs)
    if theirs is None:
        del config["activation_function"]
    out = converted(tmp_path, config)
    assert torch.load(out / "checkpoint.pt", weights_only=False)["cfg"]["model"].activation_fn == ours


def test_a_token_that_marian_lacks_is_never_predicted(tmp_path):
    """Without ``<s>`` in the vocabulary, its probability is 0 in every type, and its gradient is finite."""
    out = converted(tmp_path)
    (model,) = fairseq_norm_plugin.load(out / "checkpoint.pt", out, "de", "en").models
    bias = model.decoder.output_projection.bias
    logits = 50 * torch.randn(100, len(bias)) + bias
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        assert logits.to(dtype).isfinite().all()
        shares = logits.to(dtype).softmax(-1)
        assert shares.isfinite().all()
        assert not shares[:, 0].any()


def test_tags_of_target_languages_are_told(tmp_path, capsys):
    tokens = marian.vocabulary(40)
    tokens[7] = ">>fra<<"
    converted(tmp_path, tokens=[tokens, tokens])
    assert says(
        capsys.readouterr().err,
        "warning: … model: … tag … none is of en: … --model-option target_tag=TAG … 1 known: >>fra<<",
    )
    tokens[7] = ">>en<<"
    converted(tmp_path / "default", tokens=[tokens, tokens])
    converted(tmp_path / "one")
    assert "warning" not in capsys.readouterr().err


def test_a_token_with_a_blank_of_unicode_keeps_its_place(tmp_path):
    tokens = marian.vocabulary(40)
    tokens[5] = "▁\u3000\u2028"
    out = converted(tmp_path, tokens=[tokens, tokens])
    dictionary = fairseq_norm_plugin.load(out / "checkpoint.pt", out, "de", "en").task.source_dictionary
    assert dictionary.symbols[4:] == tokens[2:-1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "bart"}, "config.json: model_type is 'bart' … marian"),
        ({"activation_function": "mish"}, "config.json: activation_function is 'mish' … swish"),
        ({"static_position_embeddings": False}, "static_position_embeddings is False … True"),
        ({"normalize_before": True}, "normalize_before is True … False"),
        ({"normalize_embedding": True}, "normalize_embedding is True … False"),
        ({"add_final_layer_norm": True}, "add_final_layer_norm is True … False"),
        ({"is_encoder_decoder": False}, "is_encoder_decoder is False … True"),
        ({"scale_embedding": "yes"}, "scale_embedding is 'yes' … False or True"),
        ({"decoder_vocab_size": 30}, "vocab_size 40 … decoder_vocab_size 30 … share_encoder_decoder_embeddings"),
        ({"decoder_start_token_id": 0}, "decoder_start_token_id is 0 … pad_token_id 39"),
        ({"decoder_start_token_id": 5, "pad_token_id": 5}, "<pad> … 39 … pad_token_id 5"),
        ({"eos_token_id": 2}, "</s> … 0 … eos_token_id 2"),
        ({"vocab_size": 50, "decoder_vocab_size": 50}, "vocab.json … 40 tokens … vocab_size 50"),
        ({"d_model": None}, "d_model is None, not a positive integer"),
        ({"encoder_layers": True}, "encoder_layers is True, not a positive integer"),
        ({"decoder_attention_heads": 3}, "d_model 16 … decoder_attention_heads 3"),
        ({"encoder_layers": 3}, "model: the weights have no model.encoder.layers.2.self_attn.q_proj.weight"),
        ({"encoder_layers": 1}, "model: 16 tensors … model.encoder.layers.1."),
        ({"encoder_ffn_dim": 25}, "encoder.layers.0.fc1.weight has the shape [24, 16] … [25, 16]"),
        ({"tie_word_embeddings": False}, "the weights have no model.encoder.embed_tokens.weight"),
    ],
)
def test_other_configurations_are_refused(tmp_path, change, message):
    config = marian.config()
    marian.save(tmp_path / "model", config)
    (tmp_path / "model" / "config.json").write_text(json.dumps({**config, **change}))
    with pytest.raises(InputError, match=facts(message)):
        convert(tmp_path / "model", tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir() if "out" in path.name and path.is_dir()] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda tokens: {**tokens, "<pad>": 38}, "vocab.json: the ids are not … 0 to 39"),
        (lambda tokens: [*tokens], "vocab.json: … no JSON object"),
        (lambda tokens: {("<p>" if t == "<pad>" else t): i for t, i in tokens.items()}, "vocabulary has no <pad>"),
        (lambda tokens: {("a\n" if i == 7 else t): i for t, i in tokens.items()}, "token 'a\\n' … line end"),
        (lambda tokens: {t: i for t, i in tokens.items() if i != 7}, "vocab.json: … 39 tokens … vocab_size 40"),
    ],
)
def test_other_vocabularies_are_refused(tmp_path, change, message):
    path = marian.save(tmp_path / "model", marian.config()) / "vocab.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with pytest.raises(InputError, match=facts(message)):
        convert(tmp_path / "model", tmp_path / "out")


@pytest.mark.parametrize("name", ["config.json", "vocab.json", "source.spm", "target.spm", "model.safetensors"])
def test_missing_files_are_named(tmp_path, name):
    (marian.save(tmp_path / "model", marian.config()) / name).unlink()
    with pytest.raises(InputError, match=facts(name)):
        convert(tmp_path / "model", tmp_path / "out")
    with pytest.raises(InputError, match=facts("nothing: no such directory")):
        convert(tmp_path / "nothing", tmp_path / "out")


def test_languages(tmp_path):
    model = marian.save(tmp_path / "model", marian.config())
    with pytest.raises(UsageError, match=facts("source and target language are both en")):
        convert(model, tmp_path / "out", source_lang="en")
    with pytest.raises(UsageError, match=facts("-s ../de … name of a language")):
        convert(model, tmp_path / "out", source_lang="../de")
    (model / "tokenizer_config.json").unlink()
    with pytest.raises(UsageError, match=facts("tokenizer_config.json names no language (None) … -s")):
        convert(model, tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "stored", "change", "message"),
    [
        ("lm_head.weight", None, 1, "lm_head.weight differs from model.shared.weight … config.json"),
        ("model.encoder.embed_positions.weight", sinusoids(64, 16).half(), 0.004, "embed_positions.weight … learned"),
    ],
)
def test_copies_of_what_is_known(tmp_path, name, stored, change, message):
    """Old files hold copies of the embedding and of sinusoids; one that differs would be another model."""
    weights = marian.tensors(marian.config())
    copy = weights["model.shared.weight"].clone() if stored is None else stored
    assert (converted(tmp_path, weights={**weights, name: copy}) / "checkpoint.pt").exists()
    with pytest.raises(InputError, match=facts(message)):
        converted(tmp_path / "other", weights={**weights, name: copy + change})
