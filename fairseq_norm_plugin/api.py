"""The Python interface: load a checkpoint, get the maps of sentence pairs as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Optional, Union

import torch
from fairseq import checkpoint_utils
from fairseq.data.language_pair_dataset import collate
from torch import Tensor

from alignment_eval.errors import InputError
from alignment_eval.maps import DEFAULT_KINDS, KINDS, SentenceMaps
from alignment_eval.word_maps import require_known
from fairseq_norm_plugin.generator import MAPS_KEY, NormSequenceGenerator, NormSequenceScorer
from fairseq_norm_plugin.quantities import RecordedMaps, layers_and_heads, recorded_quantities
from fairseq_norm_plugin.sides import dictionary_mark, side

Sentence = Union[str, Sequence[int]]


class NormModel:
    """A translation model (or an ensemble) whose maps can be read; made by :func:`load`."""

    def __init__(self, task: Any, models: Sequence[Any], subword_mark: str = "auto", bpe: Any = None) -> None:
        self.task = task
        self.models = list(models)
        self.layers, self.heads = layers_and_heads(models)
        self._dictionaries = (task.source_dictionary, task.target_dictionary)
        self._marks = tuple(dictionary_mark(dictionary, subword_mark) for dictionary in self._dictionaries)
        self._bpe = bpe

    def maps(
        self,
        source: Sentence,
        target: Optional[Sentence] = None,
        beam: int = 5,
        kinds: Sequence[str] = DEFAULT_KINDS,
    ) -> SentenceMaps:
        """The maps of one sentence pair, teacher-forced.

        Args:
            source: tokenised text (subwords, or words if the model was loaded with ``bpe_codes``), or token ids
                with or without ``</s>``.
            target: likewise; default: the model's own translation by beam search.
            beam: the beam of that search.
            kinds: which maps (alignment_eval.maps.KINDS).

        Returns:
            Record with ``head_maps(kind)`` [L, H, T, S] and ``layer_maps(kind)`` [L, T, S] in float32, tokens and
            words of both sides, and the model's score (mean log probability a token, base e).

        Raises:
            InputError: a sentence is empty or longer than the model takes.
            UsageError: an unknown kind.
        """
        for kind in kinds:
            require_known("map kind", kind, KINDS)
        dictionary = self.task.target_dictionary
        sample = self._sample(source, target)
        recorded = RecordedMaps(
            tuple(range(self.layers)), recorded_quantities(kinds, len(self.models)), source_words=self._source_words
        )
        generator: Any
        if target is not None:
            generator = NormSequenceScorer(dictionary, recorded=recorded)
        else:
            generator = NormSequenceGenerator(self.models, dictionary, recorded=recorded, beam_size=beam)
        hypothesis = generator.generate(self.models, sample)[0][0]
        sides = [
            side(ids.cpu(), dictionary, mark)
            for ids, dictionary, mark in zip(
                (sample["net_input"]["src_tokens"][0], hypothesis["tokens"]), self._dictionaries, self._marks
            )
        ]
        return SentenceMaps(
            id=0,
            source=sides[0],
            target=sides[1],
            layers=recorded.layers,
            score=float(hypothesis["score"]),
            arrays=hypothesis[MAPS_KEY],
        )

    def _source_words(self, id_: int, tokens: Tensor) -> list[int]:
        return list(side(tokens.cpu(), self._dictionaries[0], self._marks[0]).words)

    def _sample(self, source: Sentence, target: Optional[Sentence]) -> dict[str, Any]:
        source_dictionary, target_dictionary = self._dictionaries
        item = {"id": 0, "source": self._ids(source, source_dictionary, "source", 0)}
        if target is not None:
            item["target"] = self._ids(target, target_dictionary, "target", 1)
        sample = collate([item], source_dictionary.pad(), source_dictionary.eos())
        device = next(self.models[0].parameters()).device
        sample["net_input"] = {name: tensor.to(device) for name, tensor in sample["net_input"].items()}
        sample["target"] = None if sample["target"] is None else sample["target"].to(device)
        return dict(sample)

    def _ids(self, sentence: Sentence, dictionary: Any, name: str, which: int) -> Tensor:
        if isinstance(sentence, str):
            text = self._bpe.process_line(sentence) if self._bpe else sentence
            ids: Tensor = dictionary.encode_line(text, add_if_not_exist=False, append_eos=True).long()
        else:
            ids = torch.as_tensor(list(sentence), dtype=torch.long)
            if len(ids) == 0 or ids[-1] != dictionary.eos():
                ids = torch.cat([ids, ids.new_tensor([dictionary.eos()])])
            if int(ids.min()) < 0 or int(ids.max()) >= len(dictionary):
                raise InputError(
                    f"{name}: token ids {int(ids.min())} to {int(ids.max())}: expected 0 to {len(dictionary) - 1}"
                )
        if len(ids) == 1:
            raise InputError(f"{name}: an empty sentence: expected at least one token")
        limit = min(model.max_positions()[which] for model in self.models)
        if len(ids) > limit:
            raise InputError(f"{name}: {len(ids)} tokens with </s>: expected at most the model's {limit}")
        return ids


def load(
    path: Union[str, Path],
    data: Union[str, Path],
    source_lang: Optional[str] = None,
    target_lang: Optional[str] = None,
    bpe_codes: Union[str, Path, None] = None,
    subword_mark: str = "auto",
) -> NormModel:
    """Load a fairseq checkpoint for reading its maps.

    Args:
        path: the checkpoint; several, for an ensemble, separated by colons.
        data: the directory with ``dict.<lang>.txt`` of both languages.
        source_lang: source language; told from binarised data in ``data`` if not given.
        target_lang: target language; likewise.
        bpe_codes: subword-nmt codes; then sentences are given as words.
        subword_mark: ``@@``, ``▁``, ``##``, ``none``, or ``auto`` (told from the dictionaries).

    Raises:
        InputError: a file is missing, the checkpoint is unsafe, or the model is no encoder-decoder Transformer.
    """
    from fairseq_norm_plugin.task import TranslationNormConfig, TranslationNormTask

    names = str(path).split(":")
    codes = [] if bpe_codes is None else [str(bpe_codes)]
    languages = [lang for lang in (source_lang, target_lang) if lang]
    for name in [*names, *codes, *(str(Path(data) / f"dict.{lang}.txt") for lang in languages)]:
        if not Path(name).is_file():
            raise InputError(f"{name}: no such file: expected the checkpoint, the dictionaries in {data}, or the codes")
    if not (source_lang and target_lang) and not any(Path(data).glob("*.*-*.*")):
        raise InputError(f"{data}: no binarised data to tell the languages from: give source_lang and target_lang")
    cfg = TranslationNormConfig(data=str(data), source_lang=source_lang, target_lang=target_lang)
    task = TranslationNormTask.setup_task(cfg)
    models, _, _ = checkpoint_utils.load_model_ensemble_and_task(names, task=task)
    for model in models:
        model.float().eval()  # fp16 checkpoints are computed in float32
    return NormModel(task, models, subword_mark, _read_bpe(bpe_codes))


def _read_bpe(bpe_codes: Union[str, Path, None]) -> Any:
    if bpe_codes is None:
        return None
    from subword_nmt.apply_bpe import BPE

    with Path(bpe_codes).open(encoding="utf-8") as codes:
        return BPE(codes)
