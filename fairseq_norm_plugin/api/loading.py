"""Load the checkpoint of a translation model."""

from __future__ import annotations

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

from fairseq import checkpoint_utils

from alignment_eval.errors import InputError, UsageError, warn_on_stderr
from fairseq_norm_plugin.aligning.direction import Direction
from fairseq_norm_plugin.api.model import NormModel
from fairseq_norm_plugin.pipeline.settings import TextSettings, pipelines
from fairseq_norm_plugin.tokens import Vocabulary, dictionary_mark, special_ids

#: One file, or two: of source and target.
Codes = Union[str, Path, Sequence[Union[str, Path]]]


def load(
    path: Union[str, Path],
    data: Union[str, Path],
    source_lang: Optional[str] = None,
    target_lang: Optional[str] = None,
    bpe_codes: Optional[Codes] = None,
    subword_mark: str = "auto",
    *,
    reverse_path: Union[str, Path, None] = None,
    reverse_data: Union[str, Path, None] = None,
    reverse_bpe_codes: Optional[Codes] = None,
    tokenizer: Optional[str] = None,
    bpe: Optional[str] = None,
    source_words: str = "blanks",
    target_words: str = "blanks",
    **text_options: Any,
) -> NormModel:
    """Load a fairseq checkpoint to read maps and alignments from.

    Args:
        path: the checkpoint; several, for an ensemble, separated by colons.
        data: the directory with ``dict.<lang>.txt`` of both languages.
        source_lang: source language; by default detected from binarised data in ``data``.
        target_lang: target language; likewise.
        bpe_codes: file of subword-nmt or fastBPE codes, or two files, of source and target; sentences are then given in
            words.
        subword_mark: ``@@``, ``▁``, ``##``, ``none``, or ``auto`` (detected from the dictionaries).
        reverse_path: a checkpoint of the other direction; alignments are then made by both models.
        reverse_data: its dictionaries; default: ``data``.
        reverse_bpe_codes: its codes, one file, or two, of its source (``target_lang``) and target; default:
            ``bpe_codes``.
        tokenizer: a tokenizer of fairseq (``moses``, ``space``, ``nltk``) that sentences go through; words are then its
            tokens.
        bpe: subwords of fairseq: ``subword_nmt``, ``fastbpe``, ``sentencepiece``, ``gpt2``, …; ``none``: sentences are
            given in subwords, which is the default without ``bpe_codes``.
        source_words: what the words of the source are: what ``blanks`` separate; ``characters``, in scripts without
            blanks; or ``segmented``: what blanks separate that the model does not read (with ``sentencepiece`` only).
        target_words: the same of the target.
        **text_options: fairseq's options of ``tokenizer`` and ``bpe``, such as ``sentencepiece_model``,
            ``moses_no_escape``.

    Raises:
        InputError: a file is missing, the checkpoint is unsafe, or the model is not an encoder-decoder Transformer.
        UsageError: more than two files of codes, options of a reverse model without ``reverse_path``, or options of the
            text that do not go together.
    """
    # torch warns of the masks that fairseq passes to it, which a user cannot change
    warnings.filterwarnings("ignore", message="Support for mismatched key_padding_mask and attn_mask")
    codes = _codes("bpe_codes", bpe_codes)
    words = (source_words, target_words)
    settings = TextSettings(tokenizer, bpe, {**text_options, "bpe_codes": codes}, words, subword_mark)
    model = _load_direction(path, data, source_lang, target_lang, settings)
    if reverse_path is not None:
        cfg = model.task.cfg
        reverse_codes = _codes("reverse_bpe_codes", reverse_bpe_codes)
        model.reverse = _load_direction(
            reverse_path, reverse_data or data, cfg.target_lang, cfg.source_lang, settings.exchanged(reverse_codes)
        )
    elif reverse_data is not None or reverse_bpe_codes is not None:
        raise UsageError("reverse_data or reverse_bpe_codes without reverse_path: give that checkpoint too")
    return model


def _codes(option: str, given: Optional[Codes]) -> list[str]:
    """The files of BPE codes, of source and target; none if there are no codes."""
    if given is None:
        return []
    codes = [str(given)] if isinstance(given, (str, Path)) else [str(name) for name in given]
    if not 1 <= len(codes) <= 2:
        raise UsageError(f"{option}: {len(codes)} files: expected one of joint codes, or two, of source and target")
    return codes


def _load_direction(
    path: Union[str, Path],
    data: Union[str, Path],
    source_lang: Optional[str],
    target_lang: Optional[str],
    settings: TextSettings,
) -> NormModel:
    from fairseq_norm_plugin.tasks.translation import TranslationNormConfig, TranslationNormTask

    names = str(path).split(":")
    if not (source_lang and target_lang):
        detected = _detect_languages(Path(data))
        source_lang, target_lang = source_lang or detected[0], target_lang or detected[1]
    dictionaries = [str(Path(data) / f"dict.{lang}.txt") for lang in (source_lang, target_lang)]
    for what, files in (("checkpoint", names), ("BPE codes", settings.codes), ("dictionary", dictionaries)):
        for name in files:
            if not Path(name).is_file():
                raise InputError(f"{name}: no such file; check the path of the {what}")
    cfg = TranslationNormConfig(data=str(data), source_lang=source_lang, target_lang=target_lang)
    task = TranslationNormTask.setup_task(cfg)
    try:
        models, trained, _ = checkpoint_utils.load_model_ensemble_and_task(names, task=task)
    except RuntimeError as error:
        if "size mismatch" not in str(error):
            raise
        raise InputError(
            f"{path}: its parameters do not fit the dictionaries in {data}: expected those that it was trained with"
        ) from error
    _warn_of_languages(trained, task.cfg, names[-1])
    for model in models:
        model.float().eval()  # fp16 checkpoints are computed in float32
    vocabularies = _vocabulary(task.source_dictionary, settings), _vocabulary(task.target_dictionary, settings)
    both = pipelines(settings, (source_lang, target_lang), vocabularies)
    direction = Direction(models, (task.source_dictionary, task.target_dictionary), both, str(path))
    return NormModel(task, models, direction, vocabularies, settings)


def _detect_languages(data: Path) -> tuple[str, str]:
    """The languages of the binarised data in a directory (``test.de-en.de.idx``); other names say nothing.

    Raises:
        InputError: there is no such data, or of several language pairs.
    """
    names = [path.name for path in data.iterdir()] if data.is_dir() else []
    matches = (re.fullmatch(r"[^.]+\.([^.-]+)-([^.-]+)\.(\1|\2)(\.(idx|bin))?", name) for name in names)
    pairs = sorted({(match[1], match[2]) for match in matches if match})
    if len(pairs) != 1:
        found = ", ".join("-".join(pair) for pair in pairs) or "no binarised data"
        raise InputError(
            f"{data}: found {found} to detect the languages from; give source_lang and target_lang (-s, -t)"
        )
    return pairs[0]


def _vocabulary(dictionary: Any, settings: TextSettings) -> Vocabulary:
    return Vocabulary(dictionary, dictionary_mark(dictionary, settings.mark), special_ids(dictionary))


def _warn_of_languages(trained: Any, asked: Any, path: str) -> None:
    """Warn if the model is of another direction; with a joint dictionary, nothing else would show it."""
    before = tuple(getattr(trained.task, name, None) for name in ("source_lang", "target_lang"))
    now = (asked.source_lang, asked.target_lang)
    if None not in before and before != now:
        warn_on_stderr(
            f"{path} was trained from {before[0]} to {before[1]}, but is used from {now[0]} to {now[1]}: its maps mean "
            f"little then; check that two paths are not exchanged"
        )
