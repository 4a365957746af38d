"""The Python interface: load a checkpoint, get the maps of sentence pairs as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Optional, Union

import torch
from fairseq import checkpoint_utils
from fairseq.data.language_pair_dataset import collate
from torch import Tensor

from alignment_eval.errors import InputError
from alignment_eval.formats.reading import warn_on_stderr
from alignment_eval.maps.sentence import DEFAULT_KINDS, KINDS, Array, SentenceMaps
from alignment_eval.maps.words import require_known
from fairseq_norm_plugin.bpe import read_bpe
from fairseq_norm_plugin.capture.attention import norm_attentions
from fairseq_norm_plugin.capture.capturing import MapCapture, capturing, teacher_forcing
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.capture.recorder import MAPS_KEY, RecordedMaps, layers_and_heads, recorded_quantities
from fairseq_norm_plugin.generation.generator import NormSequenceGenerator, NormSequenceScorer
from fairseq_norm_plugin.maps.block import Block
from fairseq_norm_plugin.maps.kinds import BLOCK_KINDS, HEAD_KINDS, MIXING_KINDS, head_map, layer_map, mixing_ratio
from fairseq_norm_plugin.tokens import Vocabulary, dictionary_mark, special_ids

Sentence = Union[str, Sequence[int]]


@dataclass(frozen=True)
class BlockMaps:
    """The maps of one block type for one sentence (pair).

    Attributes:
        block: block type (capture.layers.BLOCK_TYPES).
        kind: map kind (maps.kinds.BLOCK_KINDS).
        layers: layer maps, float32 [L, T, S]; encoder-decoder attention has one column more, last, with kinds that
            know a residual connection.
        heads: maps of single heads, [L, H, T, S]; None for kinds that have none.
        mixing_ratio: [L, T], fractions; None for kinds that have none.
        rows: the T target tokens, in the decoder its inputs.
        columns: the S source tokens.
    """

    block: str
    kind: str
    layers: Array
    heads: Optional[Array]
    mixing_ratio: Optional[Array]
    rows: tuple[str, ...]
    columns: tuple[str, ...]


class NormModel:
    """A translation model (or an ensemble) whose maps can be read; made by :func:`load`."""

    def __init__(self, task: Any, models: Sequence[Any], subword_mark: str = "auto", bpe: Any = None) -> None:
        self.task = task
        self.models = list(models)
        self.layers, self.heads = layers_and_heads(models)
        self._vocabularies = tuple(
            Vocabulary(dictionary, dictionary_mark(dictionary, subword_mark), special_ids(dictionary))
            for dictionary in (task.source_dictionary, task.target_dictionary)
        )
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
            kinds: which maps (alignment_eval.maps.sentence.KINDS).

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
        ids = (sample["net_input"]["src_tokens"][0], hypothesis["tokens"])
        sides = [vocabulary.side(of_side.cpu()) for vocabulary, of_side in zip(self._vocabularies, ids)]
        return SentenceMaps(
            id=0,
            source=sides[0],
            target=sides[1],
            layers=recorded.layers,
            score=float(hypothesis["score"]),
            arrays=hypothesis[MAPS_KEY],
        )

    def block_maps(self, source: Sentence, target: Sentence, block: str, kind: str) -> BlockMaps:
        """The maps of ``kind`` of every block of a type, teacher-forced; the mean over an ensemble.

        Args:
            source: as for :meth:`maps`.
            target: likewise.
            block: ``encoder.self``, ``decoder.self`` or ``decoder.cross``.
            kind: a kind of maps.kinds.BLOCK_KINDS.

        Raises:
            InputError: see :meth:`maps`; or the block has no such maps.
            UsageError: an unknown block type or kind.
        """
        inputs = self._sample(source, target)["net_input"]
        source_tokens = self._tokens(inputs["src_tokens"][0], 0)
        target_tokens = self._tokens(inputs["prev_output_tokens"][0], 1)
        rows = source_tokens if block == ENCODER_SELF else target_tokens
        columns = target_tokens if block == DECODER_SELF else source_tokens
        return _block_maps(self.models, inputs, block, kind, rows, columns)

    def _tokens(self, ids: Tensor, which: int) -> tuple[str, ...]:
        return tuple(self._vocabularies[which].dictionary[i] for i in ids.tolist())

    def _source_words(self, id_: int, tokens: Tensor) -> list[int]:
        return list(self._vocabularies[0].side(tokens.cpu()).words)

    def _sample(self, source: Sentence, target: Optional[Sentence]) -> dict[str, Any]:
        source_dictionary, target_dictionary = (vocabulary.dictionary for vocabulary in self._vocabularies)
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
    from fairseq_norm_plugin.tasks.translation import TranslationNormConfig, TranslationNormTask

    names = str(path).split(":")
    codes = [] if bpe_codes is None else [str(bpe_codes)]
    languages = [lang for lang in (source_lang, target_lang) if lang]
    for name in [*names, *codes, *(str(Path(data) / f"dict.{lang}.txt") for lang in languages)]:
        if not Path(name).is_file():
            raise InputError(f"{name}: no such file: expected the checkpoint, the dictionaries in {data}, or the codes")
    if not (source_lang and target_lang) and not any(Path(data).glob("*.*-*.*")):
        raise InputError(
            f"{data}: no binarised data to tell the languages from: give source_lang and target_lang (-s, -t)"
        )
    cfg = TranslationNormConfig(data=str(data), source_lang=source_lang, target_lang=target_lang)
    task = TranslationNormTask.setup_task(cfg)
    try:
        models, trained, _ = checkpoint_utils.load_model_ensemble_and_task(names, task=task)
    except RuntimeError as error:
        if "size mismatch" not in str(error):
            raise
        raise InputError(
            f"{path}: its parameters do not fit the dictionaries in {data}: expected the model's own dictionaries"
        ) from error
    _warn_of_languages(trained, task.cfg, names[-1])
    for model in models:
        model.float().eval()  # fp16 checkpoints are computed in float32
    return NormModel(task, models, subword_mark, None if bpe_codes is None else read_bpe(bpe_codes))


def _warn_of_languages(trained: Any, asked: Any, path: str) -> None:
    """Warn of a model of another direction: with a dictionary for both languages nothing else would tell."""
    before = tuple(getattr(trained.task, name, None) for name in ("source_lang", "target_lang"))
    now = (asked.source_lang, asked.target_lang)
    if None not in before and before != now:
        warn_on_stderr(
            f"{path} was trained from {before[0]} to {before[1]} and is read from {now[0]} to {now[1]}: its maps mean "
            f"little then; expected a model of that direction (are two paths exchanged?)"
        )


class MaskedLM:
    """A masked language model whose maps can be read; made by :func:`load_masked_lm`."""

    def __init__(self, task: Any, model: Any) -> None:
        self.task = task
        self.model = model

    def block_maps(self, sentence: str, kind: str) -> BlockMaps:
        """The maps of ``kind`` of every layer's self-attention; nothing is masked unless the text has ``<mask>``.

        Args:
            sentence: subwords, separated by spaces, without ``<s>`` and ``</s>``.
            kind: a kind of maps.kinds.BLOCK_KINDS.

        Raises:
            InputError: the sentence is empty or longer than the model takes.
            UsageError: an unknown kind.
        """
        dictionary = self.task.source_dictionary
        text = dictionary.encode_line(sentence, add_if_not_exist=False, append_eos=True).long()
        ids = torch.cat([text.new_tensor([dictionary.bos()]), text])
        limit = self.model.max_positions()
        if not 2 < len(ids) <= limit:
            raise InputError(f"{len(ids) - 2} tokens: expected 1 to {limit - 2}, since <s> and </s> are added")
        tokens = tuple(dictionary[i] for i in ids.tolist())
        return _block_maps([self.model], {"src_tokens": ids[None]}, ENCODER_SELF, kind, tokens, tokens)


def load_masked_lm(path: Union[str, Path], data: Union[str, Path]) -> MaskedLM:
    """Load a masked language model (fairseq's RoBERTa, or a converted BERT) for reading its maps.

    Args:
        path: the checkpoint.
        data: the directory with ``dict.txt``.

    Raises:
        InputError: a file is missing, the checkpoint is unsafe, or the model has no Transformer encoder.
    """
    from fairseq_norm_plugin.tasks.masked_lm import MaskedLMNormConfig, MaskedLMNormTask

    for name in (str(path), str(Path(data) / "dict.txt")):
        if not Path(name).is_file():
            raise InputError(f"{name}: no such file: expected the checkpoint, and dict.txt in {data}")
    task = MaskedLMNormTask.setup_task(MaskedLMNormConfig(data=str(data)))
    (model,), _, _ = checkpoint_utils.load_model_ensemble_and_task([str(path)], task=task)
    return MaskedLM(task, model.float().eval())


def _block_maps(
    models: Sequence[Any],
    inputs: dict[str, Any],
    block: str,
    kind: str,
    rows: tuple[str, ...],
    columns: tuple[str, ...],
) -> BlockMaps:
    require_known("block type", block, BLOCK_TYPES)
    require_known("map kind", kind, BLOCK_KINDS)
    captures = []
    for model in models:
        numbers = [attention.site.number for attention in norm_attentions(model, block)]
        capture = MapCapture(block, numbers, partial(_maps_of, kind=kind))
        with torch.no_grad(), teacher_forcing(model), capturing(norm_attentions(model), capture):
            model(**inputs, features_only=True)
        captures.append(capture.take())
    means = [
        None if layers[0] is None else torch.stack(layers).float().cpu().numpy()
        for layers in (
            [_mean([layer[part] for layer in of_models]) for of_models in zip(*captures)] for part in range(3)
        )
    ]
    layers, heads, ratio = means
    assert layers is not None
    return BlockMaps(block, kind, layers, heads, ratio, rows, columns)


def _maps_of(block: Block, kind: str) -> tuple[Optional[Tensor], ...]:
    return (
        layer_map(block, kind)[0],
        head_map(block, kind)[0] if kind in HEAD_KINDS else None,
        mixing_ratio(block, kind)[0] if kind in MIXING_KINDS else None,
    )


def _mean(values: Sequence[Optional[Tensor]]) -> Any:
    return None if values[0] is None else torch.stack([value for value in values if value is not None]).mean(0)
