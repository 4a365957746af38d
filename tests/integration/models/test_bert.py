"""BERT models into fairseq: the hidden states stay, what would change them is refused, text arrives as BERT's ids."""

import json

import pytest
import torch
from fairseq import checkpoint_utils, options
from fairseq.data import data_utils
from fairseq.tasks.masked_lm import MaskedLMConfig, MaskedLMTask
from fairseq_cli import preprocess

import fairseq_norm_plugin.tasks  # noqa: F401  # registers --arch bert
from alignment_eval.errors import InputError
from fairseq_norm_plugin.convert import convert, main
from tests.facts import facts
from tests.families import transformers
from tests.integration.scripts.preparing import run

safetensors = pytest.importorskip("safetensors.torch")
tokenizers = pytest.importorskip("tokenizers")

WORDS = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", ".", "the", "cat", "sat", "##s", "##ting", "mat"]
CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 12,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "max_position_embeddings": 16,
    "type_vocab_size": 2,
    "vocab_size": len(WORDS),
    "layer_norm_eps": 1e-6,
}
SENTENCES = ["The cats sat.", "The sitting cat [MASK] the mat .", "the"]
IDS = [[3, 7, 8, 10, 9, 6, 4], [3, 7, 2, 8, 5, 7, 12, 6, 4], [3, 7, 4]]  # "sitting" cannot be spelt


def reference(name, **changes):
    """A random model of Transformers and its weights; its embeddings are small, as a trained one's: eps matters."""
    torch.manual_seed(1)
    config = transformers("BertConfig")(**{**CONFIG, **changes}, attn_implementation="eager")
    model = transformers(name)(config).eval()
    for parameter, tensor in model.named_parameters():
        tensor.data.normal_(std=0.01 if "_embeddings." in parameter else 0.5)
    return model, {key: tensor.clone() for key, tensor in model.state_dict().items()}


@torch.no_grad()
def hidden(model, ids):
    """Every layer's hidden states [T, D] of one sentence by Transformers."""
    return [state[0] for state in model(torch.tensor([ids]), output_hidden_states=True).hidden_states]


def save(directory, weights, config=CONFIG, words=WORDS):
    directory.mkdir()
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "vocab.txt").write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    (directory / "tokenizer_config.json").write_text('{"do_lower_case": true}')
    safetensors.save_file(weights, directory / "model.safetensors")
    return directory


def load(directory, data):
    task = MaskedLMTask.setup_task(MaskedLMConfig(data=str(data)))
    (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([str(directory / "checkpoint.pt")], task=task)
    return model.eval(), task


def states(model, ids):
    with torch.no_grad():
        _, extra = model(torch.tensor([ids]), features_only=True, return_all_hiddens=True)
    return [state[:, 0] for state in extra["inner_states"]]


def fairseq_ids(task, ids):
    specials = {"[CLS]": "<s>", "[PAD]": "<pad>", "[SEP]": "</s>", "[UNK]": "<unk>", "[MASK]": "<mask>"}
    return [task.dictionary.index(specials.get(WORDS[number], WORDS[number])) for number in ids]


def test_from_a_model_and_text_to_hidden_states(tmp_path):
    """The commands of docs/analysis.md; sentences of different lengths also in one batch."""
    theirs, weights = reference("BertModel")
    directory = save(tmp_path / "model", weights)
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in SENTENCES))
    assert main(["bert", str(directory), str(tmp_path / "bert")]) == 0
    assert run("wordpiece.py", directory, tmp_path / "text", "--out", tmp_path / "text.wp").returncode == 0
    words = ["--only-source", "--srcdict", tmp_path / "bert" / "dict.txt", "--testpref", tmp_path / "text.wp"]
    words += ["--destdir", tmp_path / "data-bin"]
    preprocess.main(options.get_preprocessing_parser().parse_args([str(word) for word in words]))
    model, task = load(tmp_path / "bert", tmp_path / "data-bin")
    assert len(task.dictionary) == len(WORDS)
    assert task.dictionary.index("<mask>") == task.mask_idx == len(WORDS) - 1
    data = data_utils.load_indexed_dataset(str(tmp_path / "data-bin" / "test"), task.dictionary)
    found = [[task.dictionary.bos(), *sentence.tolist()] for sentence in data]
    assert found == [fairseq_ids(task, ids) for ids in IDS]
    with torch.no_grad():
        features, _ = model(data_utils.collate_tokens(list(map(torch.tensor, found)), 1), features_only=True)
        assert model(torch.tensor(found[:1]))[0].isnan().all()  # the model has no masked-LM head
    for sentence, ids, row in zip(found, IDS, features):
        expected = hidden(theirs, ids)
        for state, other in zip(states(model, sentence), expected, strict=True):
            torch.testing.assert_close(state, other, rtol=0, atol=1e-5)
        torch.testing.assert_close(row[: len(ids)], expected[-1], rtol=0, atol=1e-5)


def test_a_masked_lm_of_an_old_file_comes_along(tmp_path):
    """A .bin in half precision under the names of TensorFlow's models; and another activation."""
    theirs, weights = reference("BertForMaskedLM", hidden_act="gelu_new")
    theirs.load_state_dict({name: tensor.half().float() for name, tensor in weights.items()})

    def old(name):
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")

    directory = save(tmp_path / "model", {}, {**CONFIG, "hidden_act": "gelu_new"})
    (directory / "model.safetensors").unlink()
    torch.save({old(name): tensor.half() for name, tensor in weights.items()}, directory / "pytorch_model.bin")
    convert("bert", directory, tmp_path / "out")
    model, task = load(tmp_path / "out", tmp_path / "out")
    with torch.no_grad():
        logits, _ = model(torch.tensor([fairseq_ids(task, IDS[1])]))
        expected = theirs(torch.tensor([IDS[1]])).logits[0]
    every = fairseq_ids(task, list(range(len(WORDS))))
    torch.testing.assert_close(logits[0][:, every], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("config", "words", "decoder", "message"),
    [
        ({"model_type": "roberta"}, WORDS, 0, "config.json: model_type is 'roberta' … bert"),
        ({"layer_norm_eps": None}, WORDS, 0, "config.json: layer_norm_eps is None, not a number"),
        ({"num_attention_heads": 5}, WORDS, 0, "model: … options … heads"),
        ({"num_hidden_layers": 1}, WORDS, 0, "model: … parameters do not fit … layers.1."),
        ({"vocab_size": 99}, WORDS, 0, "vocab.txt: 13 tokens, but config.json gives 99"),
        ({}, WORDS, 1, "model: cls.predictions.decoder.weight differs from … word_embeddings"),
        ({}, [*WORDS[:-1], "cat"], 0, "vocab.txt:13: token 'cat' … duplicate"),
        ({}, [*WORDS[:-1], "a\u2003b"], 0, "vocab.txt:13: token 'a\\u2003b' contains a blank"),
        ({}, ["<pad]", *WORDS[1:]], 0, "has no [PAD]; give the vocabulary of a BERT model"),
    ],
)
def test_other_models_are_refused(tmp_path, config, words, decoder, message):
    weights = reference("BertForMaskedLM")[1]
    weights["cls.predictions.decoder.weight"] += decoder
    model = save(tmp_path / "model", weights, {**CONFIG, **config}, words)
    with pytest.raises(InputError, match=facts(message)):
        convert("bert", model, tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


def test_tokenizer_json_says_what_older_files_say(tmp_path):
    """As Transformers 5 saves a model: without vocab.txt."""
    model, text = save(tmp_path / "model", reference("BertForMaskedLM")[1]), tmp_path / "text"
    text.write_text("Cats\u2028sat\n\n[UNK] [MASK].\n", encoding="utf-8")
    made = {}
    for name in ("old", "new"):
        convert("bert", model, tmp_path / name)
        assert run("wordpiece.py", model, text, "--out", tmp_path / f"{name}.wp").returncode == 0
        files = tmp_path / name / "dict.txt", tmp_path / name / "checkpoint.pt", tmp_path / f"{name}.wp"
        made[name] = [file.read_bytes() for file in files]
        if name == "old":
            tokenizers.BertWordPieceTokenizer(str(model / "vocab.txt"), lowercase=True).save(
                str(model / "tokenizer.json")
            )
            (model / "vocab.txt").unlink()
            (model / "tokenizer_config.json").unlink()
    assert made["old"] == made["new"]


def test_wordpiece_keeps_lines_and_refuses_special_tokens(tmp_path):
    model, text, out = save(tmp_path / "model", {}), tmp_path / "text", tmp_path / "text.wp"
    wordpiece = ("wordpiece.py", model, text, "--out", out)
    text.write_text("Cats\u2028sat\n\n[UNK] [MASK].\n", encoding="utf-8")
    assert run(*wordpiece).returncode == 0
    assert out.read_text(encoding="utf-8") == "cat ##s sat\n\n<unk> <mask> .\n"
    out.unlink()
    text.write_text("the cat\nthe [SEP] cat\n")
    done = run(*wordpiece)
    assert (done.returncode, f"{text}:2: the line contains [SEP]" in done.stderr) == (1, True)
    assert not out.exists()
    (model / "tokenizer_config.json").unlink()
    done = run(*wordpiece)
    assert (done.returncode, "give a JSON object with do_lower_case" in done.stderr) == (1, True)
