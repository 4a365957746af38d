"""``python -m fairseq_norm_plugin.convert FAMILY MODEL OUT``: models in the format of Transformers into fairseq."""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from alignment_eval.command_line import CommandParser, Input, Output, exit_status
from alignment_eval.errors import InputError
from alignment_eval.files import new_directory
from fairseq_norm_plugin.environment import set_up_torch

PROG = "python -m fairseq_norm_plugin.convert"
_DESCRIPTION = """\
Turn a model in the format of Transformers into a fairseq checkpoint and dictionaries.

MODEL is a directory with config.json, the vocabulary, and model.safetensors or pytorch_model.bin.  The checkpoint in
OUT needs --user-dir fairseq_norm_plugin.
"""
_OWN = re.compile(
    r"checkpoint\.pt|(checkpoint\.pt|upper-layers)\.align\.json|dict(\.[\w-]+)?\.txt|(source|target)\.spm"
    r"|sentencepiece\.bpe\.model|merges\.txt|tokenizer\.json"
)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ``argv`` (default: the process's) and return its exit status."""
    set_up_torch()
    arguments = sys.argv[1:] if argv is None else list(argv)
    return exit_status(PROG, lambda: _parser().parse_args(arguments), lambda args: convert(**vars(args)))


def _parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog=PROG, description=_DESCRIPTION)
    families = parser.add_subparsers(dest="command", metavar="FAMILY", required=True)
    translation = "translation models: Marian, M2M-100, NLLB, mBART, FSMT"
    for name, text in (("bert", "BERT"), ("translation", translation)):
        family = families.add_parser(name, help=text, description=text)
        family.add_argument("model", type=Input, metavar="MODEL", help="directory of the model")
        family.add_argument("out", type=Output, metavar="OUT", help="directory to write")
        family.add_argument("--overwrite", action="store_true", help="replace OUT, if this command wrote it")
        if name == "translation":
            default = "(default: the one that the files of MODEL name)"
            family.add_argument("-s", "--source-lang", metavar="LANG", help=f"source language {default}")
            family.add_argument("-t", "--target-lang", metavar="LANG", help=f"target language {default}")
    return parser


def convert(
    command: str,
    model: str | Path,
    out: str | Path,
    overwrite: bool = False,
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> None:
    """Write a checkpoint of a ``model``, and what belongs to it, to ``out``; ``command``: bert or translation."""
    from fairseq_norm_plugin.transformers.families import read_bert

    model = Path(model)
    if not model.is_dir():
        raise InputError(f"{model}: no such directory; give the directory of a model, with its config.json")
    with new_directory(Path(out), overwrite, _OWN) as directory:
        if command == "bert":
            _build_and_write(model, directory, *read_bert(model, directory))
        else:
            _convert_translation(model, directory, source_lang, target_lang)


def _convert_translation(model: Path, directory: Path, source_lang: str | None, target_lang: str | None) -> None:
    """Write a checkpoint, dictionaries, the files of the subwords, and a profile.

    The profile is for commands that have no text to choose maps on.  It is not named after the checkpoint, because the
    others would then use it instead of choosing.
    """
    from omegaconf import OmegaConf

    from alignment_eval.profiles.profile import fit_profile
    from fairseq_norm_plugin.checkpoints.identity import model_hash
    from fairseq_norm_plugin.model.languages import setup_task
    from fairseq_norm_plugin.text.tokens import special_tokens, tagged_hash
    from fairseq_norm_plugin.transformers.families import read_directory
    from fairseq_norm_plugin.transformers.files import write_dictionary

    release = read_directory(model, (source_lang, target_lang))
    for name, tokens in release.dictionaries.items():
        write_dictionary(directory / name, tokens)
    for file in map(Path, release.text.paths):
        if file.parent == model:
            shutil.copyfile(file, directory / file.name)
    source, target = map(str, release.languages)
    task = setup_task(release, (source, target), {})  # a run chooses the target_tag
    built = _build_and_write(model, directory, task, OmegaConf.to_container(release.cfg), release.state["model"])
    layers = range(release.cfg.model.decoder_layers)
    profile = fit_profile((), layers, tagged_hash(model_hash([built]), special_tokens(task)))
    (directory / "upper-layers.align.json").write_text(f"{profile.to_json()}\n", encoding="utf-8")


def _build_and_write(name: Path, directory: Path, task: Any, cfg: dict[str, Any], parameters: dict[str, Any]) -> Any:
    """Build the model ``name``, and write its checkpoint, without an optimizer."""
    import torch

    from fairseq_norm_plugin.capture.layers import build_model
    from fairseq_norm_plugin.checkpoints.read import config_of

    model = build_model(task, {"cfg": config_of(cfg), "model": parameters}, str(name))
    history = {"optimizer_name": "none", "criterion_name": "none", "lr_scheduler_state": {}, "num_updates": 0}
    content = {
        "args": None,
        "cfg": cfg,
        "model": model.state_dict(),
        "optimizer_history": [history],
        "extra_state": {"train_iterator": {"epoch": 1, "iterations_in_epoch": 0}},
    }
    with (directory / "checkpoint.pt").open("wb") as file:  # given a path, torch would store its name in the file
        torch.save(content, file)
    return model


if __name__ == "__main__":
    sys.exit(main())
