"""A checkpoint's options cannot run code when fairseq builds its model."""

import argparse
import dataclasses
import os
import re

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.models import MODEL_DATACLASS_REGISTRY, MODEL_REGISTRY
from fairseq.registry import REGISTRIES
from fairseq.tasks import TASK_DATACLASS_REGISTRY, TASK_REGISTRY
from hypothesis import given
from hypothesis import strategies as st

import fairseq_norm_plugin as fnp
from alignment_eval.errors import AlignmentWarning, InputError
from fairseq_norm_plugin.checkpoints.read import EVALUATED, MULTILINGUAL, PATHS, as_commanded, check_options
from tests.demo import DEMO
from tests.facts import facts, says

fnp.register()
PLAIN = {"arch": "transformer", "encoder_layers": 3, "adaptive_softmax_cutoff": None, "data": "/home/me/data (old)"}


def legacy(**options):
    """A checkpoint as fairseq wrote it before version 1: all options in one namespace."""
    return {"args": argparse.Namespace(**{**PLAIN, **options})}


@pytest.fixture
def changed(tmp_path):
    """The demo's checkpoint, with changed options of its model, and a section of subwords."""

    def make(bpe=None, **options):
        state = torch.load(DEMO / "checkpoint.pt", weights_only=False)
        vars(state["cfg"]["model"]).update(options)
        state["cfg"]["bpe"] = bpe or state["cfg"]["bpe"]
        torch.save(state, tmp_path / "evil.pt")
        return tmp_path / "evil.pt"

    return make


@pytest.mark.parametrize("made", [dict, lambda options: argparse.Namespace(**options, task=options["_name"])])
def test_a_command_line_gives_a_checkpoint_its_norm_task(made):
    """Under the name that fairseq reads, ``task`` in a namespace; all but the plugin's options are the checkpoint's."""
    trained, norm = {"_name": MULTILINGUAL, "lang_pairs": "a-b"}, f"{MULTILINGUAL}_norm"
    cfg = as_commanded({"task": made(trained)}, {"task": norm, "aer_gold": "test=g", "lang_pairs": "x-y"}, "c.pt")
    assert cfg == {"task": made({**trained, "_name": norm, "aer_gold": "test=g"})}


def call(victim):
    return f'[__import__("pathlib").Path({str(victim)!r}).touch()*0+100]'


@pytest.mark.parametrize(
    "options",
    [
        {"share_decoder_input_output_embed": False, "share_all_embeddings": False, "adaptive_softmax_cutoff": call},
        {"_name": "fconv", "arch": "fconv", "encoder_layers": call},
    ],
    ids=lambda options: str(options.get("arch", next(reversed(options)))),
)
def test_text_that_fairseq_would_evaluate_is_not_loaded(changed, tmp_path, options):
    victim = tmp_path / "victim"
    path = changed(**{name: value(victim) if callable(value) else value for name, value in options.items()})
    with pytest.raises(InputError, match=r"evil\.pt: (option|architecture) "):
        fnp.load(path, DEMO, "de", "en")
    assert not victim.exists()


@pytest.mark.parametrize(
    ("state", "text"),
    [
        (legacy(decoder_embed_path="${oc.env:HOME}"), "c.pt: option decoder_embed_path is … HOME"),
        (legacy(decoder_embed_path="${common.user_dir}${oc.env:HOME}"), "c.pt: option decoder_embed_path is … HOME"),
        (
            {"cfg": {"model": {"_name": "transformer"}, "generation": {"print_alignment": "a ${oc.env:X}"}}},
            "option print_alignment",
        ),
        *((legacy(arch=arch), "c.pt: … architecture") for arch in ("lstm", None, "no_such", ["transformer"])),
        *(({group: ["transformer"]}, f"c.pt: … ({group}) … list") for group in ("args", "cfg")),
    ],
    ids=lambda value: str(value)[:60],
)
def test_options_that_are_refused(state, text):
    """References to the environment, architectures that the plugin does not read, options without names."""
    with pytest.raises(InputError, match=facts(text)):
        check_options(state, "c.pt")


def test_an_architecture_of_somebody_is_read_by_its_parameters_or_registered_by_a_directory(changed, tmp_path, recwarn):
    path = changed(arch="my_tiny", _name="my_tiny")
    weights = {"decoder.embed_tokens.weight": torch.zeros(1)}
    with pytest.raises(InputError, match=facts("'my_tiny' is not supported … --user-dir DIR")):
        check_options({**legacy(arch="my_tiny"), "model": weights}, "c.pt")
    assert not recwarn
    own = fnp.load(path, DEMO, "de", "en", bpe="none")
    said = str(recwarn.pop(AlignmentWarning).message)
    assert says(said, "evil.pt: architecture 'my_tiny' … read as fairseq's Transformer … --user-dir")
    assert own.identity == fnp.load("demo", reverse_path="none").identity
    (tmp_path / "my_lab").mkdir()
    registered = "from fairseq.models import register_model_architecture as register\n"
    (tmp_path / "my_lab/__init__.py").write_text(f"{registered}register('transformer', 'my_tiny')(lambda args: None)\n")
    fnp.load(path, DEMO, "de", "en", bpe="none", user_dir=tmp_path / "my_lab")
    assert not recwarn


@pytest.mark.parametrize(
    "options",
    [
        {"adaptive_softmax_cutoff": "[10000, 20000]", "adam_betas": "(0.9, 0.98)", "lr": [0.0005]},
        {"arch": "roberta_base", "user_dir": "${common.user_dir}"},
    ],
)
def test_options_of_real_checkpoints_pass(options):
    check_options(legacy(**options), "c.pt")


@given(
    name=st.sampled_from(sorted(EVALUATED)), text=st.text(alphabet="[](){}0123456789.,'\"_abelmnrtux*+- ", max_size=30)
)
def test_whatever_passes_is_a_literal(name, text):
    try:
        check_options(legacy(**{name: text}), "c.pt")
    except InputError:
        return
    value = eval(text, {"__builtins__": {}})  # a literal needs no name and calls nothing
    assert not callable(value)


# -- options that are paths or addresses ------------------------------------------------------------------------------

#: What the names, the help and the defaults of such options have.
NAME = re.compile(
    r"path|dir|file|dict|codes|merges|vocab|model|checkpoint|_from|gold|text|records|yaml|script|lexicon|data|json|url|"
    r"w2v|predict|alignments|profile"
)
HELP = re.compile(
    r"\bpaths?\b|\bfiles?\b|filename|director|\burl|checkpoint|download|http|folder|config\b", re.IGNORECASE
)
#: Options that only look like it, and options that do not look like it.
OTHER = {
    "aer_gold_base", "baseline_model_langs", "channels", "dataset_impl", "decoder_xformers_att_config",
    "duration_prediction", "edge_unit_prediction", "encoder_xformers_att_config", "eval_wer_config",
    "eval_wer_tokenizer", "finetune_w2v_params", "inferred_w2v_config", "labels", "langs", "next_unit_prediction",
    "shorten_data_split_list",
}  # fmt: skip


def text_options(owner, config):
    """Name, help and default of each option of text that an entry of a registry has."""
    for option in () if config is None else dataclasses.fields(config):
        if "str" in str(option.type) or not re.search(r"\b(int|float|bool)\b|Choice|enum", str(option.type)):
            yield option.name, str(option.metadata.get("help")), str(option.default)
    if hasattr(owner, "add_args"):
        parser = argparse.ArgumentParser(add_help=False, conflict_handler="resolve")
        owner.add_args(parser)
        for action in parser._actions:
            if action.nargs != 0 and action.choices is None and action.type not in (int, float):
                yield action.dest, str(action.help), str(action.default)


def in_registry(name):
    """The options of a registry that look like paths or addresses."""
    known = {"task": (TASK_REGISTRY, TASK_DATACLASS_REGISTRY), "model": (MODEL_REGISTRY, MODEL_DATACLASS_REGISTRY)}
    owners, configs = known.get(name) or (REGISTRIES[name]["registry"], REGISTRIES[name]["dataclass_registry"])
    options = (option for entry, owner in owners.items() for option in text_options(owner, configs.get(entry)))
    return {name for name, said, default in options if NAME.search(name) or HELP.search(said) or "://" in default}


@pytest.mark.parametrize("registry", PATHS)
def test_every_path_and_address_of_fairseqs_registries_is_known(registry):
    assert in_registry(registry) <= PATHS[registry] | OTHER  # each fairseq lacks some


@pytest.mark.filterwarnings("ignore")  # hydra warns of fairseq's calls
@pytest.mark.parametrize("legacy", [False, True])
def test_fairseq_opens_no_path_of_a_checkpoint(tmp_path, legacy):
    """Nor of one as fairseq wrote it before version 1."""
    os.mkfifo(tmp_path / "secret")  # opening it would not end
    names = frozenset().union(*PATHS.values())
    state = torch.load(DEMO / "checkpoint.pt", weights_only=False)
    model, task, more = state["cfg"]["model"], state["cfg"]["task"], dict.fromkeys(names, str(tmp_path / "secret"))
    if legacy:
        vars(model).update({**task, **vars(model), "task": "translation", "criterion": "cross_entropy", **more})
        state["args"], state["cfg"] = model, None
    else:
        vars(model).update(more)
        task.update(more)
    torch.save(state, tmp_path / "c.pt")
    cfg = checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "c.pt"), {"data": "mine"})["cfg"]
    for section in (cfg.model, cfg.task):
        assert {getattr(section, name, None) for name in names - {"data"}} <= {None, ""}
    assert cfg.task.data == "mine"  # what the user says


@pytest.mark.parametrize("name", ["fastbpe", "sentencepiece"])
def test_a_checkpoint_shows_no_other_file(tmp_path, changed, name):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "secret").write_text("zebra:x:0\n")
    path = changed({"_name": name, **dict.fromkeys(PATHS["bpe"], str(tmp_path / "far" / "secret"))})
    with pytest.raises(InputError, match=r"/secret: no such file, but the checkpoint") as error:
        fnp.load(path, DEMO, "de", "en")
    assert "zebra" not in str(error.value)


@pytest.mark.parametrize("name", ["gpt2", "bert"])
def test_nothing_is_fetched(changed, name):
    with pytest.raises(InputError, match=rf"--bpe {name} needs a file, and none is fetched"):
        fnp.load(changed({"_name": name}), DEMO, "de", "en")
    address = {"gpt2_encoder_json": "https://localhost/encoder.json", "gpt2_vocab_bpe": "https://localhost/vocab.bpe"}
    with pytest.raises(InputError, match=r"https://localhost/.*: no such file"):
        fnp.load(DEMO / "checkpoint.pt", DEMO, "de", "en", bpe="gpt2", **address)
