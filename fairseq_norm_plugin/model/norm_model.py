"""A translation model, or one of each direction, whose maps and alignments can be read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import torch

from alignment_eval.alignment import Alignment, Alignments
from alignment_eval.errors import InputError, UsageError, require_known
from alignment_eval.extraction.method import DEFAULTS
from alignment_eval.figures.notebook import DisplayMaps, numbered
from alignment_eval.maps.sentence import DEFAULT_KINDS, KINDS
from alignment_eval.profiles.chosen import AlignmentOptions, check_whole
from alignment_eval.profiles.profile import read_profile
from alignment_eval.transfer.pairs import Markup, check_labels, with_labels
from alignment_eval.transfer.pieces import NO_PROTECTION, Strings, protected_strings
from fairseq_norm_plugin.capture.layers import DECODER_SELF, ENCODER_SELF
from fairseq_norm_plugin.model.inspection import BlockMaps, block_maps_of, losses_of_words, uniform_losses
from fairseq_norm_plugin.model.model import UNTRANSLATED, Model, Sentence
from fairseq_norm_plugin.model.translate import Translation, join_translations, translate_lines
from fairseq_norm_plugin.model.windows import align_lists, text_lines
from fairseq_norm_plugin.text.offsets import word_spans
from fairseq_norm_plugin.text.pair import SentencePair

if TYPE_CHECKING:
    import pandas as pd


class NormModel:
    """A translation model (or an ensemble) whose maps and alignments can be read.

    :func:`fairseq_norm_plugin.model.load.load` makes it.

    Several threads may use it: one at a time runs the models, the others wait.

    Attributes:
        forward: the model of the source and target languages.
        reverse: that of the other direction, or None.
        task: fairseq's task, with the dictionaries.
        models: fairseq's models, the networks of the ensemble.
        layers: number of decoder layers.
        heads: number of heads of each layer.
        vocabularies: of source and target.
        languages: source and target language.
        text: how text becomes words and subwords.
        loaded_by: what loads the model again, with its arguments and its options; None: nothing does.
        defaults: options of alignment that hold where others are not given.
    """

    def __init__(
        self,
        forward: Model,
        reverse: Model | None = None,
        task: Any = None,
        loaded_by: tuple[Callable[..., NormModel], tuple[Any, ...], dict[str, Any]] | None = None,
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.forward, self.reverse, self.task = forward, reverse, task
        self.models, self.layers, self.heads = forward.networks, forward.layers, forward.heads
        self.vocabularies, self.languages, self.text = forward.vocabularies, forward.languages, forward.text
        self.loaded_by, self.defaults = loaded_by, dict(defaults or {})

    def __repr__(self) -> str:
        names = " and ".join("-".join(each.languages) for each in self.both)
        members = [member for each in self.both for member in each.networks]
        sizes = {id(weights): weights.numel() for member in members for weights in member.parameters()}
        profile = table = "none"
        if not self.defaults.get("profile") and self.forward.profile.is_file():
            profile = self.forward.profile.name
            found = read_profile(self.forward.profile).table
            table = "none" if found is None else Path(found.name).name
        return f"{type(self).__name__}({names}, {sum(sizes.values()):,} parameters, profile: {profile}, table: {table})"

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickled or copied model is loaded again, from the same files, on the same device."""
        if self.loaded_by is None:
            raise UsageError(
                "this model cannot be pickled: load it in each process, or give fairseq_norm_plugin.AlignBatch"
            )
        return _load_again, (*self.loaded_by, str(self.forward.device))

    @property
    def identity(self) -> str:
        """The hash of the parameters of the model, and of its tags if it is language-tagged."""
        return self.forward.identity

    @property
    def both(self) -> list[Model]:
        """The models of both directions, or the only one."""
        return [self.forward] if self.reverse is None else [self.forward, self.reverse]

    def to(self, device: str | torch.device) -> NormModel:
        """Move all models, also those of the other direction, to ``device``; returns the model itself."""
        for model in self.both:
            model.to(device)
        return self

    @overload
    def maps(  # type: ignore[overload-overlap]  # a string is a list of strings too: it is one sentence
        self, source: str, target: str | None = ..., beam: int = ..., kinds: Sequence[str] = ..., max_tokens: int = ...
    ) -> DisplayMaps: ...

    @overload
    def maps(
        self,
        source: Iterable[Sentence],
        target: Iterable[Sentence] | None = ...,
        beam: int = ...,
        kinds: Sequence[str] = ...,
        max_tokens: int = ...,
    ) -> list[DisplayMaps]: ...

    def maps(
        self,
        source: str | Iterable[Sentence],
        target: str | Iterable[Sentence] | None = None,
        beam: int = 5,
        kinds: Sequence[str] = DEFAULT_KINDS,
        max_tokens: int = DEFAULTS.max_tokens,
    ) -> DisplayMaps | list[DisplayMaps]:
        """Compute the maps of the sentence pairs of two lists, teacher-forced.

        Args:
            source: a list of sentences: tokenised text (subwords, or words if the model was loaded with ``bpe_codes``),
                or token ids with or without ``</s>``; or one sentence as text.
            target: likewise; default: the model's own translations by beam search.
            beam: beam size of that search.
            kinds: which maps (alignment_eval.maps.sentence.KINDS).
            max_tokens: how many tokens (of the longer sides of the pairs) go through the model together.

        Returns:
            A record of each pair with ``head_maps(kind)`` [L, H, T, S] and ``layer_maps(kind)`` [L, T, S] in float32,
            ``to_frame`` and ``plot``, tokens and words of both sides, and the model's score (mean log probability a
            token, base e); ``id`` is the place in the list.  Token ids with an unknown id may hide which word their
            neighbours belong to: then ``status`` is not ``ok``, and no words are aligned.

        Examples:
            >>> maps = model.maps("Wir haben das gesagt.", "We said that.")
            >>> maps.to_frame("attn_n", layer=2).idxmax(axis="columns")["said"]
            'gesagt'

        Raises:
            InputError: a sentence is empty or longer than the model takes, or is neither text nor token ids; or the
                lists are empty or differ in length.
            UsageError: an unknown kind, or ``max_tokens`` below 1.
        """
        for kind in kinds:
            require_known("map kind", kind, KINDS)
        check_whole("max_tokens", max_tokens)
        if isinstance(source, str):
            return self.maps([source], None if target is None else [target], beam, kinds, max_tokens)[0]  # type: ignore[list-item]
        return self.forward.sentence_maps(self._encoded_lists(source, target), kinds, beam, max_tokens)

    def block_maps(self, source: Sentence, target: Sentence, block: str, kind: str) -> BlockMaps:
        """Compute the maps of ``kind`` of every block of a type, teacher-forced; the mean over an ensemble.

        Args:
            source: one sentence: text or token ids, as for :meth:`maps`.
            target: likewise.
            block: ``encoder.self``, ``decoder.self`` or ``decoder.cross``.
            kind: a kind of map of one block (docs/maps.md).

        Raises:
            InputError: see :meth:`maps`; or the block has no such maps.
            UsageError: an unknown block type or kind.
        """
        pair = self._encoded(source, target)
        inputs = self.forward.sample({0: pair})["net_input"]
        tokens, targets = (line.side.tokens for line in pair)
        decoder = (*targets[-1:], *targets[:-1])  # its inputs
        rows = tokens if block == ENCODER_SELF else decoder
        columns = decoder if block == DECODER_SELF else tokens
        return block_maps_of(self.models, inputs, block, kind, rows, columns)

    def deletion(self, source: Sentence, target: Sentence, unknown: bool = False) -> pd.DataFrame:
        """Compute what the prediction of each target word loses without each source word.

        Args:
            source: one sentence: text or token ids, as for :meth:`maps`.
            target: likewise.
            unknown: the encoder reads ``<unk>`` in the place of the source word; else it reads the whole source, and
                the encoder-decoder attention of no layer sees the word.

        Returns:
            The log probability (base e) of each target word minus that without the source word: target words as rows,
            source words as columns, named as in ``to_frame`` of a map.

        Raises:
            InputError: see :meth:`maps`.
        """
        import pandas as pd

        pair = self._encoded(source, target)
        columns, rows = (
            pd.Index(numbered(line.side.word_strings()), name=name) for line, name in zip(pair, ("source", "target"))
        )
        return pd.DataFrame(losses_of_words(self.forward, pair, unknown), rows, columns)

    def uniform_losses(
        self, source: Iterable[Sentence], target: Iterable[Sentence], max_tokens: int = DEFAULTS.max_tokens
    ) -> pd.DataFrame:
        """Compute what predictions lose if attention looks at all positions alike, instead of as it learned to.

        Args:
            source: a list of sentences, as for :meth:`maps`.
            target: likewise.
            max_tokens: tokens of a batch.

        Returns:
            The mean log probability (base e) of a target token, teacher-forced, minus that with uniform weights in one
            layer: block types as rows, layers as columns; ``all``: in all layers of the type.  Of an ensemble, the
            first model is measured.

        Raises:
            InputError: see :meth:`maps`.
            UsageError: ``target`` is None, or ``max_tokens`` is no whole number above 0.
        """
        import pandas as pd

        if target is None:
            raise UsageError("uniform_losses without target: expected the translations of the sources")
        check_whole("max_tokens", max_tokens)
        found = uniform_losses(self.forward, self._encoded_lists(source, target), max_tokens)
        named = [(block, "all" if layer is None else layer, loss) for block, layer, loss in found]
        table = pd.DataFrame(named, columns=["block", "layer", "loss"])
        rows, columns = (table[name].unique() for name in ("block", "layer"))  # pivot sorts them
        return table.pivot(index="block", columns="layer", values="loss").loc[rows, columns]

    def _encoded_lists(self, source: Iterable[Sentence], target: Iterable[Sentence] | None) -> dict[int, SentencePair]:
        """The pairs of two lists, by their places."""
        lines = self.forward.encode_sentences(source, 0, "source")
        targets = [UNTRANSLATED] * len(lines)
        if target is not None:
            targets = self.forward.encode_sentences(target, 1, "target")
        if len(lines) != len(targets):
            raise InputError(f"{len(lines)} sources, but {len(targets)} targets: expected as many")
        return dict(enumerate(map(SentencePair, lines, targets)))

    def _encoded(self, source: Sentence, target: Sentence) -> SentencePair:
        sides = (source, 0, "source"), (target, 1, "target")
        return SentencePair(*(self.forward.encode_sentence(*side) for side in sides))

    @overload
    def align(self, source: str, target: str, **options: Any) -> Alignment: ...

    @overload
    def align(
        self,
        source: Iterable[str],
        target: Iterable[str],
        *,
        source_words: Iterable[Sequence[str]] | None = ...,
        target_words: Iterable[Sequence[str]] | None = ...,
        protect: str | None = ...,
        **options: Any,
    ) -> Alignments: ...

    def align(
        self,
        source: str | Iterable[str],
        target: str | Iterable[str],
        *,
        source_words: Iterable[Sequence[str]] | None = None,
        target_words: Iterable[Sequence[str]] | None = None,
        protect: str | None = None,
        **options: Any,
    ) -> Alignment | Alignments:
        """Align the words of the sentence pairs of two lists, as norm-align does.

        The models' profiles say how.  Without a profile, a model chooses its maps on the pairs themselves, if there are
        30 or more.  The logger ``fairseq_norm_plugin`` says which way was taken.  A list is aligned as one text.

        Args:
            source: a list of lines: raw text, as the model's text recipe reads it; without a recipe, text as for
                :meth:`maps`; or one line.
            target: likewise.
            source_words: the words of each source of a list, if they are given rather than found.
            target_words: likewise.
            protect: a regular expression of strings that are linked to their copy in the target, and so are URLs, mail
                addresses, placeholders and emoji; default: no string is.
            **options: of :class:`alignment_eval.profiles.chosen.AlignmentOptions`, such as ``scores=True``.

        Returns:
            All alignments, in the order of the lists; for one line its alignment.  In a list, a pair that is empty or
            longer than the models take has no links, and its ``status`` says why; one warning counts such pairs.

        Examples:
            >>> alignment = model.align("Wir sind hier, im Haus.", "We are here, in the house.")
            >>> alignment.to_pharaoh()
            '0-0 1-1 2-2 3-3 4-4 4-5 5-6 6-7'

        Raises:
            InputError: a sentence is not text; a single one is empty or too long; lists are empty or differ in length;
                a list of 10 or more pairs does not look like translations (``force=True`` aligns them all the same);
                or a profile or lexical table cannot be used.
            UsageError: a profile of one direction for two models, options that do not go together, or a value out of
                its range.
        """
        one = isinstance(source, str)
        alignments = align_lists(
            self.both,
            text_lines([source] if one else source, "source"),
            text_lines([target] if one else target, "target"),
            AlignmentOptions.of({**self.defaults, **options}),
            (source_words, target_words),
            None if protect is None else protected_strings(protect),
        )
        return _only(alignments) if one else alignments

    @overload
    def translate(self, source: str, *, beam: int = ..., protect: str | None = ..., **options: Any) -> Alignment: ...

    @overload
    def translate(
        self, source: Iterable[str], *, beam: int = ..., protect: str | None = ..., **options: Any
    ) -> Alignments: ...

    def translate(
        self, source: str | Iterable[str], *, beam: int = 5, protect: str | None = None, **options: Any
    ) -> Alignment | Alignments:
        """Translate the lines of a list by fairseq's beam search, and align the translations.

        An unknown word, which fairseq would print as ``<unk>``, is copied from the source word that it is linked to.

        Args:
            source: raw text, as the model's text recipe reads it; or one line.
            beam: beam size.
            protect: URLs, mail addresses, placeholders and emoji are not translated but come out letter by letter, and
                so does what matches this regular expression; ``none``: everything is translated.
            **options: of :meth:`align`.

        Returns:
            The alignments of sources and translations, as :meth:`align` makes them, with the ``score``; for one line
            its alignment.  In a list, a line that is empty or too long has an empty translation, and its ``status``
            says why.

        Examples:
            >>> model.translate("Wir sind hier.").target
            'we are here.'

        Raises:
            InputError: a line is not text; a single one is empty or too long; or as for :meth:`align`.
            UsageError: ``beam`` is below 1; or as for :meth:`align`.
        """
        check_whole("beam", beam)
        stated = AlignmentOptions.of({**self.defaults, **options, "force": True})  # raises now, not after hours
        strings = protected_strings(protect)
        if isinstance(source, str):
            return _only(self.translate([source], beam=beam, protect=protect, **options))
        lines = text_lines(source, "source")
        translations = self.translations(lines, beam, stated, strings)
        targets = [translation.sentences or translation.text for translation in translations]
        aligned = align_lists(self.both, lines, targets, stated, strings=strings)
        scored = (replace(pair, score=translation.score) for pair, translation in zip(aligned, translations))
        return Alignments(scored, aligned.signature)

    def translations(
        self,
        lines: Sequence[str],
        beam: int,
        options: AlignmentOptions,
        strings: Strings | None = None,
        progress: Callable[[int], object] = lambda _: None,
    ) -> list[Translation]:
        """Translate raw lines, and put back what a model does not translate: ``strings``, and unknown words.

        ``options`` say how these are aligned.
        """
        cut = list(map(self.forward.pipelines_for(options.split_sentences)[0].split, lines))
        of_rest = replace(options, scores=False, source_contribution=False, split_sentences=False)
        found = translate_lines(
            [sentence.strip() if len(sentences) > 1 else sentence for sentences in cut for sentence in sentences],
            lambda texts: self.forward.translate(texts, beam, options.max_tokens, progress),
            lambda texts, targets: align_lists(self.both, texts, targets, of_rest, quiet=True),
            strings if self.forward.pipelines[0].reads_raw else None,
        )
        rest = iter(found)
        return [join_translations(sentences, list(islice(rest, len(sentences)))) for sentences in cut]

    def transfer_markup(
        self,
        sources: Iterable[str],
        targets: Iterable[str] | None = None,
        syntax: str = "xml",
        opaque: Collection[str] = (),
        protect: str | None = None,
        **options: Any,
    ) -> list[str]:
        """Put the inline tags of each source line onto its translation (alignment_eval.transfer.markup).

        Args:
            sources: raw lines with inline markup.
            targets: their translations, plain text; None: the model translates.
            syntax: ``xml`` or ``html``.
            opaque: names of further elements whose content is no text, such as ``code``.
            protect: as for :meth:`translate`; in targets these strings are linked to their copies.  Without targets
                elements with ``translate="no"`` or ``class="notranslate"``, ``code``, ``kbd``, ``samp``, ``var`` and
                ``mrk`` of the type ``protected`` are not translated either.
            **options: of :meth:`align`, or without targets of :meth:`translate`.

        Returns:
            The targets with the tags of their sources; characters that the syntax reserves are escaped.

        Examples:
            >>> model.transfer_markup(["Wir sind <b>hier</b>."], ["We are here."])
            ['We are <b>here</b>.']

        Raises:
            InputError: a line's tags do not balance, a target has tags; or as for :meth:`align`.
            UsageError: an unknown syntax; or as for :meth:`align`.
        """
        aligned = self.align_markup(sources, targets, syntax, opaque, protect, **options)
        return [pair.marked or "" for pair in aligned]

    def align_markup(
        self,
        sources: Iterable[str],
        targets: Iterable[str] | None = None,
        syntax: str = "xml",
        opaque: Collection[str] = (),
        protect: str | None = None,
        **options: Any,
    ) -> Alignments:
        """As :meth:`transfer_markup`; returns the alignments of the texts without tags, each with ``marked``."""
        markup = Markup.of(syntax, opaque, protected_strings(protect) if targets is None else None)
        lines = text_lines(sources, "sources")
        plain = [markup.plain(line, name=f"sources[{k}]") for k, line in enumerate(lines)]
        if targets is None:
            aligned = self.translate(plain, protect=NO_PROTECTION, **options)
        else:
            aligned = self.align(plain, targets, protect=protect or r"(?!)", **options)  # default: no more strings
        marked = (markup.put(line, pair, name=f"targets[{k}]") for k, (line, pair) in enumerate(zip(lines, aligned)))
        return Alignments(marked, aligned.signature)

    def project(
        self, labels: Iterable[Sequence[str]], sources: Iterable[str], targets: Iterable[str], **options: Any
    ) -> list[list[tuple[str, str]]]:
        """Carry BIO labels of source words over to target words (alignment_eval.transfer.labels).

        Args:
            labels: of each source, one label for each word that whitespace separates.
            sources: the source lines.
            targets: their translations.
            **options: of :meth:`align`.

        Returns:
            For each pair the target words, each with its label.

        Raises:
            InputError: labels and words differ in number, a label is not BIO; or as for :meth:`align`.
        """
        lines = text_lines(sources, "sources")
        words, of_words = [[line[start:end] for start, end in word_spans(line)] for line in lines], list(labels)
        if len(of_words) != len(lines):
            raise InputError(f"labels of {len(of_words)} sentences, but {len(lines)} sources: expected as many")
        for number, (own, of_line) in enumerate(zip(of_words, words)):
            check_labels(own, of_line, f"labels[{number}]")
        return with_labels(of_words, self.align(lines, targets, source_words=words, **options))


def _load_again(
    load: Callable[..., NormModel], args: tuple[Any, ...], options: dict[str, Any], device: str
) -> NormModel:
    return load(*args, **options).to(device)


def _only(alignments: Alignments) -> Alignment:
    """The alignment of a single pair, which must be one that the model can align."""
    (alignment,) = alignments
    if not alignment.ok:
        raise InputError(f"the sentence pair is {alignment.status}: expected one that the model can align")
    return alignment
