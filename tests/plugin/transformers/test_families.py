"""Reading a directory of Transformers: what is written, what is known, and what is refused in one sentence."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from alignment_eval.profiles.profile import read_profile
from fairseq_norm_plugin.checkpoints.identity import model_hash
from fairseq_norm_plugin.convert import convert, main
from fairseq_norm_plugin.transformers import families
from fairseq_norm_plugin.transformers.files import mbart_text, read_weights, write_dictionary
from fairseq_norm_plugin.transformers.networks import sinusoids
from tests.facts import facts, says
from tests.families import save, tokenizer

safetensors = pytest.importorskip("safetensors.torch")
POSITIONS = "model.encoder.embed_positions.weight"


@pytest.fixture(scope="module")
def saved(made_once):
    """A Marian model."""

    def make(directory):
        save(directory / "marian", "marian")

    return made_once("marian", make) / "marian"


@pytest.fixture
def changed(saved, tmp_path):
    """A copy of the Marian model with other tokens or options."""

    def make(tokens=None, **options):
        model = shutil.copytree(saved, tmp_path / "model")
        config = {**json.loads((model / "config.json").read_text()), **options}
        (model / "config.json").write_text(json.dumps(config))
        if tokens:
            path = model / "vocab.json"
            path.write_text(json.dumps(tokens(json.loads(path.read_text(encoding="utf-8")))))
        return model

    return make


def renamed(**names):
    """Other names for the tokens of some ids, ``i7="…"``."""
    return lambda ids: {names.get(f"i{number}", token): number for token, number in ids.items()}


def converted(model, *languages):
    out = model.with_name("out")
    convert("translation", model, out, True, *languages)
    return fairseq_norm_plugin.load(out / "checkpoint.pt", out, "de", "en", bpe="none")


def test_what_is_written(changed, tmp_path, capsys):
    model, out = changed(), tmp_path / "out"
    assert main(["translation", str(model), str(out), "-s", "deu", "-t", "eng"]) == 0
    names = {"checkpoint.pt", "upper-layers.align.json", "dict.deu.txt", "dict.eng.txt", "source.spm", "target.spm"}
    assert {path.name for path in out.iterdir()} == names
    loaded = fairseq_norm_plugin.load(out / "checkpoint.pt", out, "deu", "eng", bpe="none")
    profile = read_profile(out / "upper-layers.align.json").of(model_hash(loaded.models))
    assert (profile.chosen_by, profile.pairs) == ("upper-layers", 0)
    assert str(profile.extraction().heads) == "1,2"
    assert main(["translation", str(model), str(out)]) == 1
    assert "out: already exists" in capsys.readouterr().err
    assert main(["translation", str(model), str(out), "--overwrite"]) == 0
    assert (out / "dict.de.txt").exists()
    assert not (out / "dict.deu.txt").exists()


def test_tokens_with_a_line_break_keep_the_ids_of_the_others(tmp_path):
    dictionary = write_dictionary(tmp_path / "dict.txt", ["a", "b\n", "\r", "c"])
    assert (dictionary.index("a"), dictionary.index("c"), len(dictionary)) == (4, 7, 8)


def test_a_new_family_is_one_row(changed, monkeypatch):
    row = families.FAMILIES["marian"]
    toy = replace(row, name="Toy", allowed={**row.allowed, "activation_function": ("relu",)})
    monkeypatch.setitem(families.FAMILIES, "toy", toy)
    model = changed(model_type="toy", activation_function="relu")
    assert converted(model).models[0].decoder.layers[0].activation_fn is torch.nn.functional.relu
    (model / "config.json").write_text('{"model_type": "other", "is_encoder_decoder": true}')
    with pytest.raises(InputError, match=facts("model_type is 'other' … fsmt (FSMT), toy (Toy)")):
        converted(model)


def test_a_bias_of_the_logits_is_marians_only(changed, monkeypatch):
    other = replace(families.FAMILIES["marian"], options={"_name": "transformer"})
    monkeypatch.setitem(families.FAMILIES, "marian", other)
    model = changed(decoder_start_token_id=0)
    stored = safetensors.load_file(model / "model.safetensors")
    bias = torch.zeros_like(stored["final_logits_bias"])
    safetensors.save_file({**stored, "final_logits_bias": bias}, model / "model.safetensors")
    families.read_directory(model, (None, None))
    bias[0, 3] = 1
    safetensors.save_file({**stored, "final_logits_bias": bias}, model / "model.safetensors")
    with pytest.raises(InputError, match=facts("final_logits_bias is not 0")):
        families.read_directory(model, (None, None))


def test_one_vocabulary_and_two_embeddings(changed):
    """Equal tokens do not make the matrices one."""
    model = changed(share_encoder_decoder_embeddings=False)
    stored = safetensors.load_file(model / "model.safetensors")
    shared = stored.pop("model.shared.weight")
    two = {f"model.{stack}.embed_tokens.weight": shared + number for number, stack in enumerate(("encoder", "decoder"))}
    safetensors.save_file({**stored, **two}, model / "model.safetensors")
    (loaded,) = converted(model).models
    assert not torch.equal(loaded.encoder.embed_tokens.weight[4:], loaded.decoder.embed_tokens.weight[4:])


def test_a_vocabulary_may_have_fairseqs_first_token(changed):
    """``<s>`` of a vocabulary is fairseq's; a token with whitespace of Unicode keeps its place."""
    model = changed(tokens=renamed(i5="▁\u3000\u2028", i7="<s>"))
    tokens = list(json.loads((model / "vocab.json").read_text(encoding="utf-8")))
    weights = safetensors.load_file(model / "model.safetensors")
    loaded = converted(model)
    assert loaded.task.source_dictionary.symbols[4:] == [*tokens[2:7], *tokens[8:-1]]
    projection = loaded.models[0].decoder.output_projection
    assert len(projection.bias) == len(weights["model.shared.weight"])
    assert torch.equal(projection.weight[0], weights["model.shared.weight"][7])
    assert projection.bias[0] == weights["final_logits_bias"][0, 7]


def test_tags_of_target_languages_are_named(changed, recwarn):
    model = changed(tokens=renamed(i7=">>fra<<"))
    converted(model)
    warning = "model: … tag … none is of en: … --model-option target_tag=TAG … 1 known: >>fra<<"
    assert says(str(recwarn.pop(UserWarning).message), warning)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model_type": "llama", "is_encoder_decoder": None}, "'llama', no encoder-decoder, … marian"),
        ({"activation_function": "mish"}, "config.json: activation_function is 'mish' … swish"),
        ({"decoder_vocab_size": 30}, "vocab_size … decoder_vocab_size 30 differ … one matrix"),
        ({"decoder_start_token_id": 0}, "decoder_start_token_id is 0 … pad_token_id"),
        ({"eos_token_id": 2}, "</s> … 0 … eos_token_id 2"),
        ({"decoder_attention_heads": 3}, "model: … options … heads"),
        ({"encoder_layers": 1}, "model: … parameters do not fit … encoder.layers.1."),
        ({"encoder_ffn_dim": 9}, "model: … parameters do not fit … encoder.layers.0.fc1.weight"),
    ],
)
def test_other_configurations_are_refused(changed, tmp_path, change, message):
    with pytest.raises(InputError, match=facts(message)):
        converted(changed(**change))
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["model"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda ids: {**ids, "<unk>": 0}, "vocab.json: the ids are not … 0 to"),
        (lambda ids: {("<p>" if token == "<pad>" else token): id_ for token, id_ in ids.items()}, "has no <pad>"),
    ],
)
def test_other_vocabularies_are_refused(changed, change, message):
    with pytest.raises(InputError, match=facts(message)):
        converted(changed(tokens=change))


def test_languages(changed):
    model = changed()
    with pytest.raises(UsageError, match=facts("source and target language are both en")):
        converted(model, "en")
    with pytest.raises(UsageError, match=facts("-s ../de … name of a language")):
        converted(model, "../de")
    (model / "tokenizer_config.json").unlink()
    with pytest.raises(UsageError, match=facts("tokenizer_config.json names no language (None) … -s")):
        converted(model)


@pytest.mark.parametrize(
    ("name", "change", "dtype", "message"),
    [
        ("lm_head.weight", 1, torch.float32, "model: lm_head.weight differs from model.shared.weight"),
        (POSITIONS, 0.02, torch.bfloat16, "model: … embed_positions.weight … learned"),
    ],
)
def test_copies_of_what_is_known(changed, name, change, dtype, message):
    """Old files hold copies of the embedding and of sinusoids; one that differs would be another model."""
    model = changed()
    stored = safetensors.load_file(model / "model.safetensors")
    copy = sinusoids(128, 16) if name == POSITIONS else stored["model.shared.weight"].clone()
    safetensors.save_file({**stored, name: copy.to(dtype)}, model / "model.safetensors")
    converted(model)
    safetensors.save_file({**stored, name: (copy + change).to(dtype)}, model / "model.safetensors")
    with pytest.raises(InputError, match=facts(message)):
        converted(model)
    safetensors.save_file({**stored, name: copy[1:]}, model / "model.safetensors")
    with pytest.raises(InputError, match=facts(f"model: {name} has the shape")):
        converted(model)
    stored["model.encoder.layers.0.fc1.bias"] = torch.ones(24, dtype=torch.int8)
    safetensors.save_file(stored, model / "model.safetensors")
    with pytest.raises(InputError, match=facts("fc1.bias is of the type torch.int8 … not quantised")):
        converted(model)


def read_mbart(directory):
    return mbart_text(directory, {"vocab_size": 500, "max_position_embeddings": 8}, ("de_DE", "en_XX"))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("special_tokens_map", {"additional_special_tokens": [{"content": 1}]}),
        ("tokenizer_config", {"added_tokens_decoder": {"x": {"content": "de_DE"}}}),
        ("tokenizer", {"added_tokens": [{"content": "de_DE", "id": -1}]}),
    ],
    ids=str,
)
def test_tokens_of_other_types(tmp_path, file, content):
    tokenizer(tmp_path, "mbart")
    (tmp_path / f"{file}.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=facts(f"damaged, or not a tokenizer … {next(iter(content))}")):
        read_mbart(tmp_path)


@pytest.mark.parametrize("name", ["sentencepiece.bpe.model", "special_tokens_map.json"])
def test_a_file_that_is_a_link_to_itself(tmp_path, name):
    tokenizer(tmp_path, "mbart")
    (tmp_path / name).unlink()
    (tmp_path / name).symlink_to(name)
    with pytest.raises(InputError, match=facts(f"{name}: a symbolic link to itself")):
        read_mbart(tmp_path)


# -- weights in one file or in parts, safetensors or a .bin that cannot run code


TENSORS = {"a": torch.ones(2, 3), "b": torch.zeros(4).half()}
WHOLE = {"safetensors": "model.safetensors", "bin": "pytorch_model.bin"}


def in_parts(directory, save, ending):
    names = {"a": f"model-1-of-2.{ending}", "b": f"model-2-of-2.{ending}"}
    for name, file in names.items():
        save({name: TENSORS[name]}, directory / file)
    (directory / f"{WHOLE[ending]}.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))


@pytest.mark.parametrize(("save", "ending"), [(safetensors.save_file, "safetensors"), (torch.save, "bin")])
def test_one_file_or_parts(tmp_path, save, ending):
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    save(TENSORS, whole / WHOLE[ending])
    in_parts(parts, save, ending)
    for directory in (whole, parts):
        found = read_weights(directory)
        assert found.keys() == TENSORS.keys()
        assert {name: stored.dtype for name, stored in found.items()} == {"a": torch.float32, "b": torch.float16}
        assert all(torch.equal(found[name], tensor) for name, tensor in TENSORS.items())


def test_a_part_is_missing_or_another_one(tmp_path):
    in_parts(tmp_path, safetensors.save_file, "safetensors")
    safetensors.save_file({"c": torch.ones(1)}, tmp_path / "model-2-of-2.safetensors")
    with pytest.raises(InputError, match=facts("model-2-of-2.safetensors: … no b … index.json")):
        read_weights(tmp_path)
    (tmp_path / "model-2-of-2.safetensors").unlink()
    with pytest.raises(InputError, match=facts("model-2-of-2.safetensors: no such file … index.json")):
        read_weights(tmp_path)


def test_parts_are_read_in_the_directory_only(tmp_path):
    torch.save(TENSORS, tmp_path / "secret.bin")
    (tmp_path / "model").mkdir()
    index = tmp_path / "model" / "pytorch_model.bin.index.json"
    index.write_text('{"weight_map": {"a": "../secret.bin"}}')
    with pytest.raises(InputError, match=facts("model/secret.bin: no such file")):
        read_weights(tmp_path / "model")
    index.write_text('{"weight_map": {"a": 1}}')
    with pytest.raises(InputError, match=facts("index.json: … weight_map")):
        read_weights(tmp_path / "model")


class Code:
    def __reduce__(self):
        return print, ("this file ran code",)


def test_a_bin_cannot_run_code(tmp_path, capsys):
    torch.save({"a": Code()}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=facts("pytorch_model.bin: the file holds … could run code")) as caught:
        read_weights(tmp_path)
    assert "weights_only=False" not in str(caught.value)
    assert capsys.readouterr().out == ""


def test_files_that_are_no_weights(tmp_path):
    with pytest.raises(InputError, match=facts("neither model.safetensors nor pytorch_model.bin")):
        read_weights(tmp_path)
    torch.save({"model": {}}, tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match=facts("pytorch_model.bin: … more than named tensors")):
        read_weights(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match=facts("model.safetensors: damaged")):
        read_weights(tmp_path)
