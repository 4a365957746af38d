"""Translation models in the format of Transformers, written as fairseq's checkpoint, dictionaries and subwords."""

from __future__ import annotations

import shutil
from pathlib import Path

from alignment_eval.errors import InputError
from alignment_eval.profiles.profile import fit_profile
from fairseq_norm_plugin.checkpoints.identity import model_hash
from fairseq_norm_plugin.checkpoints.read import build_model
from fairseq_norm_plugin.convert.checkpoint import PROFILE, converted, write_checkpoint
from fairseq_norm_plugin.model.languages import Languages, is_language_tagged, setup_task
from fairseq_norm_plugin.text.tokens import NO_TAG, tagged_hash
from fairseq_norm_plugin.transformers.families import read_release


def convert(
    model: Path,
    out: Path,
    overwrite: bool = False,
    source_lang: str | None = None,
    target_lang: str | None = None,
) -> None:
    """Write OUT/checkpoint.pt, dictionaries, the files of the subwords, and a profile.

    The profile, OUT/upper-layers.align.json, is for commands that have no text to choose maps on.  It is not named
    after the checkpoint, because the others would then use it instead of choosing.

    Args:
        model: directory of the model.
        out: directory to write.
        overwrite: replace ``out``.
        source_lang: source language; default: the one that the model's files name.
        target_lang: target language; likewise.
    """
    with converted(model, out, overwrite) as directory:
        release = read_release(model, directory, source_lang, target_lang)
        if getattr(release.cfg["task"], "encoder_langtok_last", False):
            raise InputError(
                f"{model}/tokenizer_config.json: legacy_behaviour is true, but fairseq's tasks cannot put the language "
                f"of the source last; give {model} itself to norm-align"
            )
        for named in release.subwords.values():
            for file in map(Path, named if isinstance(named, list) else [named]):
                if file.parent == model:
                    shutil.copyfile(file, directory / file.name)
        state = release.state
        told = is_language_tagged(state["cfg"].task)  # others may have tags, of which each run chooses one
        stated = {} if told else {"target_tag": NO_TAG}
        task = setup_task(state["cfg"].task, Languages(*release.languages, directory, stated))
        built = build_model(task, state, str(model))
        write_checkpoint(directory, built, release.cfg)
        layers = range(release.cfg["model"].decoder_layers)
        profile = fit_profile((), layers, tagged_hash(model_hash([built]), task.special_tokens))
        (directory / PROFILE).write_text(f"{profile.to_json()}\n", encoding="utf-8")
