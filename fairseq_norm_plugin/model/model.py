"""The model of one direction: its networks and their subwords; the maps and translations of batches; its profile."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import attrgetter
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from fairseq.data.data_utils import batch_by_size
from fairseq.data.language_pair_dataset import collate
from fairseq.sequence_generator import SequenceGenerator
from numpy.typing import NDArray
from torch import Tensor

from alignment_eval.errors import InputError, UsageError, progress_bar, shown
from alignment_eval.extraction.method import DEFAULTS, ExtractionOptions, MapName
from alignment_eval.extraction.pair_scores import DECIMALS
from alignment_eval.figures.notebook import DisplayMaps
from alignment_eval.files import Value
from alignment_eval.maps.sentence import SentenceMaps, status_of
from alignment_eval.profiles.profile import UPPER_KIND, Profile, TextRecipe, fit_profile
from fairseq_norm_plugin.capture.attention import in_one_thread, teacher_forcing
from fairseq_norm_plugin.capture.recorder import (
    Hypotheses,
    RecordedMaps,
    forced_maps,
    has_readout,
    layers_and_heads,
    real_positions,
    recorded_quantities,
)
from fairseq_norm_plugin.checkpoints.identity import architecture_hash, dictionary_hash, model_hash
from fairseq_norm_plugin.environment import enough_threads
from fairseq_norm_plugin.model.translate import COPY, Translation
from fairseq_norm_plugin.text.pair import Line, SentencePair, TextPipeline
from fairseq_norm_plugin.text.tokens import SpecialTokens, Vocabulary, tagged_hash

#: Tokens of a batch at most whose maps of all layers are held, which takes gigabytes of larger batches in large models.
_HELD_TOKENS = 1000
#: A pair as each model reads it: encoded by the model of its own direction, and exchanged by that of the other.
Encoded = tuple[SentencePair, ...]
#: Text, or token ids.
Sentence = str | Sequence[int]
#: The types of token ids; others would be cut to whole numbers.
_WHOLE = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
#: The target that a search is to find.
UNTRANSLATED = Line("", (), "")
#: An encoded pair, of one direction or of all.
Pair = TypeVar("Pair")


def count_tokens(pairs: Mapping[int, SentencePair]) -> int:
    """The tokens of all sides of a batch."""
    return sum(sum(pair.lengths) for pair in pairs.values())


def length_batches(
    pairs: Mapping[int, Pair], max_tokens: int, lengths: Callable[[Any], Sequence[int]] = attrgetter("lengths")
) -> Iterator[dict[int, Pair]]:
    """Batches of encoded pairs of similar length, by id, short pairs first, with at least one pair in each.

    Pads included, the longer sides of a batch have ``max_tokens``; ``lengths`` gives the tokens of each side of a pair.
    """
    if not pairs:
        return
    ids, table = list(pairs), np.array(list(map(lengths, pairs.values())), dtype=np.int64)
    order = np.lexsort((*table.T, table.max(axis=1)))
    longest = table.max(axis=1)[order]
    # fairseq's function indexes the lengths by these numbers
    batches = batch_by_size(
        np.arange(len(order)), None, num_tokens_vec=longest, max_tokens=max(max_tokens, int(longest[-1]))
    )
    for batch in batches:
        yield {ids[row]: pairs[ids[row]] for row in order[batch]}


def encode(pair: SentencePair, models: Sequence[Model]) -> Encoded:
    """A source-target pair as each of the models reads it."""
    return tuple(model.encode(own) for model, own in zip(models, (pair, pair.exchanged)))


def refusal(encoded: Encoded, models: Sequence[Model]) -> str:
    """Why one of the models cannot read a pair; empty if all can."""
    return next(filter(None, (model.refusal(own) for model, own in zip(models, encoded))), "")


def usable_pairs(pairs: Iterable[SentencePair], models: Sequence[Model]) -> list[Encoded]:
    """The first different source-target pairs that all models can align; they are read as far as needed."""
    different: dict[tuple[tuple[str, ...], ...], Encoded] = {}
    for pair in itertools.chain.from_iterable(pair.sentences for pair in pairs):
        encoded = encode(pair, models)
        if not refusal(encoded, models):
            different.setdefault(pair.words, encoded)
        if len(different) == DEFAULTS.profile_pairs:
            break
    return list(different.values())


@dataclass(eq=False, repr=False)
class Model:
    """A model (or an ensemble) of one direction, with the segmentation of its text."""

    networks: Sequence[Any]  #: fairseq's models, in evaluation mode
    vocabularies: tuple[Vocabulary, Vocabulary]  #: of source and target
    pipelines: tuple[TextPipeline, TextPipeline]  #: how lines of source and target are read
    name: str  #: path of the checkpoint, also for messages
    special_tokens: SpecialTokens  #: around the sides
    languages: tuple[str, str] = ("", "")  #: source and target language
    text: TextRecipe = field(default_factory=TextRecipe)  #: how text becomes words and subwords
    profile: Path = Path()  #: where its profile is, or is to be
    trained: tuple[str, str] | None = None  #: the languages that the checkpoint names, if it is used for others
    guided: tuple[MapName, ...] = ()  #: the maps that it was trained to align with, some in AWI and some in AWO
    dtype: str = "float32"  #: the type that the networks are computed in
    parameters: str | None = None  #: the hash of the parameters in float32; None: that of the networks as they are

    def __post_init__(self) -> None:
        #: The numbers of decoder layers, and of heads of each.
        self.layers, self.heads = layers_and_heads(self.networks)
        #: The maximum lengths of source and target, in tokens with ``</s>``.
        self.limits = tuple(min(network.max_positions()[which] for network in self.networks) for which in (0, 1))
        self._special_ids = self.special_tokens.ids

    @cached_property
    def identity(self) -> str:
        """The hash of the parameters, and of the tags if the model is language-tagged.

        A model in 16 bits has that of its checkpoint in float32, so its profile serves all types.
        """
        return tagged_hash(self.parameters or model_hash(self.networks), self.special_tokens)

    @cached_property
    def signature_fields(self) -> dict[str, Value]:
        """What the signature of alignments says of the model and of how its text is made."""
        return {
            "model": self.identity,
            "architecture": architecture_hash(self.networks),
            "dtype": self.dtype,
            "dictionary": dictionary_hash(*(vocabulary.dictionary for vocabulary in self.vocabularies)),
            **self.text.fields(),
        }

    @property
    def device(self) -> torch.device:
        """Where the networks are."""
        return torch.device(next(self.networks[0].parameters()).device)

    def to(self, device: str | torch.device) -> None:
        """Move the networks to ``device``."""
        for network in self.networks:
            network.to(device)

    def pipelines_for(self, split_sentences: bool) -> tuple[TextPipeline, TextPipeline]:
        """How lines of source and target are read: whole, or in sentences."""
        if not split_sentences:
            return self.pipelines
        source, target = (own.in_sentences(language) for own, language in zip(self.pipelines, self.languages))
        return source, target

    def check(self, options: ExtractionOptions) -> None:
        """Check that the model has the maps that ``options`` name."""
        if beyond := options.heads.beyond(range(self.layers), self.heads, self.name):
            raise UsageError(f"{beyond}; name maps in that range")

    def encode(self, pair: tuple[Line, Line]) -> SentencePair:
        """Encode source and target of a pair."""
        return SentencePair(self.encode_line(pair[0], 0), self.encode_line(pair[1], 1))

    def encode_line(self, line: Line, which: int) -> Line:
        """Encode a source (``which`` 0) or a target (1).

        A word of the text that looks like ``</s>``, ``<pad>`` or a tag is unknown.
        """
        dictionary, (prefix, suffix) = self.vocabularies[which].dictionary, self.special_tokens.around(which)
        side = self.pipelines[which].segment(line, *([dictionary[i] for i in part] for part in (prefix, suffix)))
        known = map(dictionary.index, side.tokens[len(prefix) : len(side.tokens) - len(suffix)])
        unknown = dictionary.unk()
        ids = [id_ if id_ >= dictionary.nspecial and id_ not in self._special_ids else unknown for id_ in known]
        whole = np.array([*prefix, *ids, *suffix], dtype=np.int64)
        return replace(line, side=side, ids=torch.from_numpy(whole), unknown=ids.count(unknown))

    def sample(self, pairs: Mapping[int, SentencePair], targets: bool = True) -> dict[str, Any]:
        """Collate pairs, given by id, to a batch on the networks' device, with their targets or without."""
        items = [
            {"id": id_, "source": pair.source.ids, **({"target": pair.target.ids} if targets else {})}
            for id_, pair in pairs.items()
        ]
        sample = dict(collate(items, self.vocabularies[0].dictionary.pad(), self.special_tokens.first))
        inputs = {name: value for name, value in sample["net_input"].items() if torch.is_tensor(value)}
        moved = {name: value.to(self.device) for name, value in inputs.items()}
        whole = None if sample["target"] is None else sample["target"].to(self.device)
        return {**sample, "net_input": moved, "target": whole}

    def refusal(self, lines: Sequence[Line]) -> str:
        """Why the model cannot read an encoded source, and its target if it is there; empty if it can.

        A line is empty if it has no words, or if the model reads no subword of them.
        """
        longer = [limit for limit, line in zip(self.limits, lines) if len(line.ids) > limit]
        if longer:
            return f"longer than {longer[0]} tokens"
        return "" if all(line.side.word_count for line in lines) else "empty"

    @torch.no_grad()
    def maps(
        self, pairs: Mapping[int, SentencePair], kinds: Sequence[str], names: Sequence[MapName], log_probs: bool = False
    ) -> dict[int, SentenceMaps]:
        """Compute the maps ``names`` of each pair of a batch, by id, in one pass that stops at the highest layer.

        ``log_probs``: the pass goes on to the log probabilities of the target tokens.
        """
        layers = tuple(sorted({name.layer for name in names}))
        whole = {name.layer for name in names if name.head is None}
        recorded = RecordedMaps(layers, recorded_quantities(list(kinds), len(self.networks)), whole=whole)
        sample = self.sample(pairs, targets=False)
        ids, src_tokens = sample["id"].tolist(), sample["net_input"]["src_tokens"]
        hypotheses: Hypotheses = [[{"tokens": pairs[id_][1].ids.to(src_tokens.device)}] for id_ in ids]
        pad = self.vocabularies[1].dictionary.pad()
        with enough_threads(self.networks, count_tokens(pairs)):
            ((_, batch),) = forced_maps(
                self.networks, sample, hypotheses, recorded, pad, self.special_tokens.first, log_probs=log_probs
            )
        lengths = [len(pairs[id_][1].ids) for id_ in ids]
        arrays = batch.sentences(real_positions(src_tokens, pad), list(map(slice, lengths)))
        probs = batch.log_probs(lengths) if log_probs else itertools.repeat(None)
        return {
            id_: SentenceMaps(
                id_, pairs[id_].source.side, pairs[id_].target.side, layers, arrays=own, log_probs=of_tokens
            )
            for id_, own, of_tokens in zip(ids, arrays, probs)
        }

    def fit_profile(self, pairs: Iterable[SentencePair], max_tokens: int) -> Profile:
        """The profile of the model: by its training to align, else by its maps of encoded pairs.

        ``pairs`` are :func:`usable_pairs`, as this model reads them.
        """
        encoded = dict(enumerate(pairs))
        if len(encoded) < DEFAULTS.fewest_pairs:
            encoded = {}
        layers = range(self.layers)
        batches = list(length_batches(encoded, min(max_tokens, _HELD_TOKENS)))
        maps: dict[int, SentenceMaps] = {}
        for batch in progress_bar(batches, len(batches), "batches"):
            maps |= self.maps(batch, [DEFAULTS.kind], list(map(MapName, layers)))
        kind = UPPER_KIND if all(has_readout(network.decoder) for network in self.networks) else DEFAULTS.kind
        return fit_profile([maps[id_] for id_ in encoded], layers, self.identity, self.guided, kind)

    @torch.no_grad()
    def scores(self, pairs: Mapping[int, SentencePair]) -> dict[int, NDArray[np.float64]]:
        """The log probability (base e) of each token of each target given its source, by the first network."""
        sample = self.sample(pairs)
        target = sample["target"]
        network = self.networks[0]
        with enough_threads([network], count_tokens(pairs)), teacher_forcing(network):
            lprobs = network.get_normalized_probs(network(**sample["net_input"]), log_probs=True, sample=sample)
        pads = target == self.vocabularies[1].dictionary.pad()
        of_tokens = lprobs.gather(-1, target[..., None])[..., 0].masked_fill(pads, 0)
        rows = zip(sample["id"].tolist(), of_tokens.double().cpu().numpy(), (~pads).sum(-1).tolist())
        return {id_: row[:length] for id_, row, length in rows}

    def encode_sentence(self, sentence: Sentence, which: int, name: str) -> Line:
        """Encode a source (``which`` 0) or a target (1), called ``name`` in messages.

        Raises:
            InputError: it is empty or longer than the model takes, or is neither text nor ids of tokens.
        """
        if isinstance(sentence, str):
            line = self.encode_line(self.pipelines[which].read(sentence), which)
        else:
            line = self._spelled(self._checked_ids(sentence, which, name), which)
        if not line.side.word_count:
            raise InputError(f"{name}: an empty sentence: expected at least one token")
        if len(line.ids) > (limit := self.limits[which]):
            raise InputError(f"{name}: {len(line.ids)} tokens with </s>: the model takes at most {limit}")
        return line

    def encode_sentences(self, sentences: Iterable[Sentence], which: int, name: str) -> list[Line]:
        """Encode the sources (``which`` 0) or the targets (1) of a list, called ``name`` in messages."""
        if isinstance(sentences, str) or not isinstance(sentences, Iterable):
            raise InputError(f"{name}: {sentences!r:.40}: expected a list of sentences, each of them text or token ids")
        lines = [self.encode_sentence(own, which, f"{name}[{number}]") for number, own in enumerate(sentences)]
        if not lines:
            raise InputError(f"{name}: an empty list: expected at least one sentence")
        return lines

    def _checked_ids(self, sentence: Sequence[int], which: int, name: str) -> Tensor:
        """Token ids, with the special tokens around them."""
        dictionary = self.vocabularies[which].dictionary
        try:
            given = torch.as_tensor(list(sentence))
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise InputError(f"{name}: {shown(sentence)}: expected text or token ids ({error})") from error
        if len(given) and (given.dim() != 1 or given.dtype not in _WHOLE):
            raise InputError(f"{name}: {shown(sentence)}: expected text or token ids, which are whole numbers")
        ids = given.to(torch.long)
        if len(ids) and ids[-1] == dictionary.eos():
            ids = ids[:-1]
        prefix, suffix = map(ids.new_tensor, self.special_tokens.around(which))
        ids = torch.cat([prefix, ids, suffix])
        if (low := int(ids.min())) < 0 or int(ids.max()) >= len(dictionary):
            raise InputError(f"{name}: token ids {low} to {int(ids.max())}: expected 0 to {len(dictionary) - 1}")
        return ids

    def _spelled(self, ids: Tensor, which: int) -> Line:
        spelling = self.vocabularies[which].spell(ids)
        return Line("", (), "", spelling.side, ids, spelling.unknown, certain=spelling.certain)

    def sentence_maps(
        self, pairs: Mapping[int, SentencePair], kinds: Sequence[str], beam: int, max_tokens: int
    ) -> list[DisplayMaps]:
        """The maps of ``kinds`` of all layers of encoded pairs, in order; untranslated ones are translated."""
        names = [MapName(layer) for layer in range(self.layers)]
        maps = {}
        for batch in length_batches(pairs, max_tokens):
            if all(pair.target is UNTRANSLATED for pair in batch.values()):
                for id_, best in self.search(batch, beam).items():
                    translation = replace(self._spelled(best["tokens"].cpu(), 1), certain=True)
                    batch[id_] = batch[id_]._replace(target=translation)
            for id_, found in self.maps(batch, kinds, names, log_probs=True).items():
                assert found.log_probs is not None
                status = status_of(*(line.certain for line in batch[id_]))
                maps[id_] = replace(DisplayMaps.of(found), status=status, score=float(found.log_probs.mean()))
        return [maps[id_] for id_ in pairs]

    def translate(
        self, sources: Sequence[str], beam: int, max_tokens: int, progress: Callable[[int], object] = lambda _: None
    ) -> list[Translation]:
        """The best translation of each raw line, in their order, with :data:`.translate.COPY` for each ``<unk>``.

        A line of which the model reads nothing, or one that is longer than it takes, gets an empty translation.
        ``progress`` is called with the number of lines after each batch.
        """
        pairs: dict[int, SentencePair] = {}
        for id_, line in enumerate(map(self.pipelines[0].read, sources)):
            source = self.encode_line(line, 0)
            if not self.refusal([source]):
                pairs[id_] = SentencePair(source, UNTRANSLATED)
        translations = [Translation()] * len(sources)
        progress(len(sources) - len(pairs))
        for batch in length_batches(pairs, max_tokens):
            for id_, best in self.search(batch, beam).items():
                tokens = best["tokens"].tolist()
                score = round(float(best["score"]), DECIMALS)
                translations[id_] = Translation(self._raw_text(tokens), score, len(tokens))
            progress(len(batch))
        return translations

    def search(self, pairs: Mapping[int, SentencePair], beam: int) -> dict[int, dict[str, Any]]:
        """The best hypothesis of fairseq's beam search for the source of each pair of a batch, by id."""
        sample = self.sample(pairs, targets=False)
        special, dictionary = self.special_tokens, self.vocabularies[1].dictionary
        eos, prefix = special.target_suffix[-1], special.target_prefix
        source = sample["net_input"]["src_tokens"]
        forced = source.new_tensor(prefix).expand(len(source), -1) if prefix else None
        first = None if special.first == eos else special.first
        threads = enough_threads(self.networks, count_tokens(pairs))
        with threads, in_one_thread(self.networks):  # a generator sets its beam on the networks
            generator = SequenceGenerator(self.networks, dictionary, beam_size=beam, eos=eos)
            hypotheses = generator.generate(self.networks, sample, prefix_tokens=forced, bos_token=first)
        return {id_: best for id_, (best, *_) in zip(sample["id"].tolist(), hypotheses)}

    def _raw_text(self, ids: Sequence[int]) -> str:
        vocabulary = self.vocabularies[1]
        tokens = [vocabulary.dictionary[number] for number in ids if number not in vocabulary.specials]
        text, unknown = self.pipelines[1].raw(tokens), vocabulary.dictionary.unk()
        return text.replace(vocabulary.dictionary[unknown], COPY) if unknown in ids else text
