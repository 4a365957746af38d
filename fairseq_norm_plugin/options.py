"""The options that the plugin adds to a fairseq task, and what they mean once checked."""

# No `from __future__ import annotations` here: fairseq reads the field types at run time.
import re
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from alignment_eval.errors import UsageError
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.extraction.rules import RULES
from alignment_eval.maps.sentence import DEFAULT_KINDS, HEAD_KINDS, KINDS
from alignment_eval.maps.subwords import MARKS
from alignment_eval.maps.words import SETTINGS
from alignment_eval.records.store import DTYPES
from fairseq_norm_plugin.capture.recorder import STEPWISE_KINDS
from fairseq_norm_plugin.generation.generator import PrintedMap
from fairseq_norm_plugin.output.session import OutputOptions
from fairseq_norm_plugin.output.shard_parts import IfExists
from fairseq_norm_plugin.tokens import Vocabulary, special_ids


@dataclass
class NormConfig(FairseqDataclass):  # type: ignore[misc]  # fairseq is untyped
    """Options of a norm task; all have defaults under which the task behaves as fairseq's own."""

    norm_map: ChoiceEnum(list(KINDS)) = field(  # type: ignore[valid-type]
        default="attn_n",
        metadata={"help": "map that --print-alignment and --norm-alignments use (docs/maps.md)"},
    )
    norm_layer: Optional[int] = field(
        default=None,
        metadata={
            "help": "decoder layer of that map, counted from 0 (papers count from 1); default: the last but one, "
            "which aligns best in AWO (docs/maps.md)"
        },
    )
    norm_heads: Optional[str] = field(
        default=None,
        metadata={"help": "heads of that layer to sum (norms) or average (weights) over, e.g. 0,3; default: all"},
    )
    norm_setting: ChoiceEnum(list(SETTINGS)) = field(  # type: ignore[valid-type]
        default="awo",
        metadata={"help": "row of a target token: the one that predicts it (awo) or that it is the input of (awi)"},
    )
    norm_alignments: Optional[str] = field(
        default=None,
        metadata={
            "help": "file for word alignments of the best hypotheses: Pharaoh lines in corpus order; several shards "
            "leave parts in FILE.parts for align-eval merge (docs/scale.md)"
        },
    )
    norm_rule: ChoiceEnum(list(RULES)) = field(  # type: ignore[valid-type]
        default="kobayashi2020", metadata={"help": "extraction rule of --norm-alignments and --aer-gold"}
    )
    norm_null: Optional[str] = field(
        default=None,
        metadata={"help": "may </s> win a target word, which then stays unaligned: allow or mask; default: the rule's"},
    )
    norm_final_punctuation: bool = field(
        default=False,
        metadata={"help": "link final punctuation to final punctuation in --norm-alignments and --aer-gold"},
    )
    norm_records: Optional[str] = field(
        default=None, metadata={"help": "directory for records of the maps (docs/formats.md); one run a directory"}
    )
    norm_record_kinds: str = field(
        default=",".join(DEFAULT_KINDS), metadata={"help": f"kinds of maps to record, of {', '.join(KINDS)}"}
    )
    norm_record_layers: Optional[str] = field(
        default=None, metadata={"help": "decoder layers to record, counted from 0, e.g. 0,2; default: all"}
    )
    norm_records_dtype: ChoiceEnum(list(DTYPES)) = field(  # type: ignore[valid-type]
        default="float32", metadata={"help": "type of the recorded values"}
    )
    norm_records_resume: bool = field(
        default=False, metadata={"help": "keep what was written of this shard before a stop, and do the rest"}
    )
    norm_records_overwrite: bool = field(
        default=False, metadata={"help": "replace what was written of this shard before"}
    )
    norm_part_sentences: int = field(
        default=10000, metadata={"help": "sentences in a part of the output; what a stop can lose at most"}
    )
    norm_subword_mark: ChoiceEnum(["auto", *MARKS]) = field(  # type: ignore[valid-type]
        default="auto",
        metadata={"help": "how subwords are marked; auto: told from each dictionary"},
    )
    norm_source_text: Optional[str] = field(
        default=None,
        metadata={
            "help": "text of the binarised source, a sentence a line, in its subwords or in words: tells which words "
            "unknown subwords are pieces of; without it, sentences where that matters get no links (docs/formats.md)"
        },
    )
    norm_target_text: Optional[str] = field(
        default=None, metadata={"help": "likewise, text of the target; with --score-reference"}
    )
    norm_special_tokens: Optional[str] = field(
        default=None,
        metadata={
            "help": "further tokens that belong to no word, as </s> does, separated by commas: tags in the text such "
            "as <2de>,<2fr>; multilingual tasks know their own (docs/models.md)"
        },
    )
    norm_profile: Optional[str] = field(
        default=None,
        metadata={
            "help": "profile whose maps --norm-alignments reads unless an option names maps or a rule (default: "
            "the one beside the checkpoint, CHECKPOINT.align.json; none: no profile)"
        },
    )
    norm_checkpoint: Optional[str] = II("common_eval.path")
    # fairseq-generate ignores --num-shards without a word; the task must see it to refuse it.
    norm_num_shards: int = II("dataset.num_shards")


def fill_interpolations(args: Namespace, options: type[FairseqDataclass]) -> None:
    """Give ``args``, which hold the options of all groups, the interpolated ones of ``options`` too."""
    for option in fields(options):
        group_and_name = re.fullmatch(r"\$\{\w+\.(\w+)\}", str(option.default))
        if group_and_name:
            setattr(args, option.name, getattr(args, group_and_name[1], None))


@dataclass(frozen=True)
class NormOptions:
    """:class:`NormConfig`, checked against a model of so many layers and heads.

    ``layer``, ``heads`` (None: all), ``kind`` and ``setting`` name the one map that is printed and extracted;
    ``output`` says what a run writes.
    """

    kind: str
    layer: int
    heads: Optional[tuple[int, ...]]
    setting: str
    output: OutputOptions

    def printed(self, style: str, vocabularies: Sequence[Vocabulary]) -> PrintedMap:
        """The map that ``--print-alignment`` shows, ``hard`` or ``soft``.

        Raises:
            UsageError: it cannot show maps of that kind.
        """
        if self.kind not in STEPWISE_KINDS:
            raise UsageError(
                f"--print-alignment cannot show --norm-map {self.kind}: expected {' or '.join(STEPWISE_KINDS)}, "
                f"which follow beam search step by step; --norm-alignments and --norm-records know all kinds"
            )
        source, target = (vocabulary.specials for vocabulary in vocabularies)
        return PrintedMap(self.kind, self.layer, self.heads, self.setting, style, (source, target))


def check_command(cfg: Any, generation: Any, wanted: bool, interactive: bool) -> None:
    """Check options that must agree with those of fairseq's, before a run with maps.

    Args:
        cfg: options of the task.
        generation: fairseq's options of generation.
        wanted: whether the run writes records or word alignments; else it only prints maps.
        interactive: whether it is fairseq-interactive's.

    Raises:
        UsageError: an option contradicts another, or does nothing.
    """
    if interactive and str(getattr(generation, "print_alignment", None)) == "soft":
        raise UsageError(
            "fairseq-interactive formats alignments itself and crashes on --print-alignment soft: "
            "use hard there, or fairseq-generate"
        )
    if not (cfg.source_lang and cfg.target_lang):
        raise UsageError("--source-lang and --target-lang are missing: a run with maps is of one language pair")
    if wanted and getattr(generation, "retain_dropout", False):
        raise UsageError("--retain-dropout would draw other dropout masks for the maps than for the hypotheses")
    if wanted and cfg.norm_target_text and not getattr(generation, "score_reference", False):
        raise UsageError(
            "--norm-target-text without --score-reference: the targets are the model's own translations, which no "
            "text can spell; leave it out"
        )
    if cfg.norm_records_resume and cfg.norm_records_overwrite:
        raise UsageError("--norm-records-resume and --norm-records-overwrite contradict each other: give one")
    if int(cfg.norm_part_sentences) < 1:
        raise UsageError(f"--norm-part-sentences {cfg.norm_part_sentences}: expected 1 or more")
    if cfg.norm_num_shards != 1:
        raise UsageError(
            f"--num-shards {cfg.norm_num_shards} does nothing in fairseq-generate (every shard would be the "
            f"whole corpus): use --distributed-world-size N --distributed-rank k"
        )


def vocabularies(
    cfg: Any, source_dictionary: Any, target_dictionary: Any, tags: Sequence[str]
) -> tuple[Vocabulary, Vocabulary]:
    """What the token ids of source and target mean.

    Args:
        cfg: options of the task.
        source_dictionary: fairseq's.
        target_dictionary: fairseq's.
        tags: tokens by which the task names languages to the model.

    Raises:
        UsageError: ``--norm-special-tokens`` names what neither dictionary has.
    """
    dictionaries = source_dictionary, target_dictionary
    stated = [token for token in str(cfg.norm_special_tokens or "").split(",") if token]
    for token in stated:
        if not any(token in dictionary for dictionary in dictionaries):
            raise UsageError(
                f"--norm-special-tokens {cfg.norm_special_tokens}: neither dictionary has {token}: "
                f"expected tokens of the binarised text, separated by commas"
            )
    source, target = (
        Vocabulary(dictionary, str(cfg.norm_subword_mark), special_ids(dictionary, [*tags, *stated]))
        for dictionary in dictionaries
    )
    return source, target


def names_maps(cfg: Any) -> bool:
    """Whether ``cfg`` says what alignments are read from: an option of maps or rule is not at its default."""
    default = NormConfig()
    names = ("map", "layer", "heads", "setting", "rule", "null", "final_punctuation")
    return any(str(getattr(cfg, f"norm_{name}")) != str(getattr(default, f"norm_{name}")) for name in names)


def resolve(cfg: Any, layers: int, heads: int, profile: Optional[ExtractionOptions] = None) -> NormOptions:
    """Check ``cfg`` against a model with ``layers`` decoder layers of ``heads`` heads.

    Args:
        cfg: the options of the task.
        layers: the model's decoder layers.
        heads: the heads of each.
        profile: what alignments are read from unless ``cfg`` names maps.

    Raises:
        UsageError: a layer or head that the model has not, an unknown kind, or options that contradict each other.
    """
    layer = default_layer(layers) if cfg.norm_layer is None else int(cfg.norm_layer)
    _check_number(layer, "--norm-layer", layers)
    chosen = None if cfg.norm_heads is None else parse_numbers(cfg.norm_heads, "--norm-heads", heads)
    record_layers = set(range(layers))
    if cfg.norm_record_layers is not None:
        record_layers = set(parse_numbers(cfg.norm_record_layers, "--norm-record-layers", layers))
    record_kinds = set(parse_kinds(cfg.norm_record_kinds, "--norm-record-kinds", tuple(KINDS)))
    kind = str(cfg.norm_map)
    read_layers, read_kind, extraction = {layer}, kind, None
    if cfg.norm_alignments:
        extraction = extraction_options(cfg, kind, layer, chosen)
        if profile is not None and not names_maps(cfg):
            extraction, read_kind, read_layers = profile, profile.kind, {name.layer for name in profile.maps}
    if not cfg.norm_records:
        record_layers, record_kinds = read_layers, {read_kind}
    elif cfg.norm_alignments and not (read_layers <= record_layers and read_kind in record_kinds):
        raise UsageError(
            f"--norm-alignments reads {read_kind} of layers {', '.join(map(str, sorted(read_layers)))}, which "
            f"--norm-record-kinds {cfg.norm_record_kinds} or --norm-record-layers {cfg.norm_record_layers} leaves out: "
            f"expected them among those"
        )
    return NormOptions(
        kind=kind,
        layer=layer,
        heads=chosen,
        setting=str(cfg.norm_setting),
        output=OutputOptions(
            records=_path(cfg.norm_records),
            alignments=_path(cfg.norm_alignments),
            kinds=tuple(name for name in KINDS if name in record_kinds),
            layers=tuple(sorted(record_layers)),
            heads=heads,
            dtype=str(cfg.norm_records_dtype),
            extraction=extraction,
            texts=(_path(cfg.norm_source_text), _path(cfg.norm_target_text)),
            if_exists=IfExists(bool(cfg.norm_records_resume), bool(cfg.norm_records_overwrite)),
            part_sentences=int(cfg.norm_part_sentences),
        ),
    )


def _path(text: Optional[str]) -> Optional[Path]:
    return Path(text) if text else None


def default_layer(layers: int) -> int:
    """The layer that aligns best in AWO: the last but one (Kobayashi et al. 2020: layer 5 of 6, counted from 1)."""
    return max(0, layers - 2)


def default_layers(layers: int) -> tuple[int, ...]:
    """The layers whose mean aligns best in AWO: the last two (docs/reproduction.md, sets chosen on cmu150)."""
    return tuple(range(default_layer(layers), layers))


def extraction_options(cfg: Any, kind: str, layer: int, heads: Optional[tuple[int, ...]]) -> ExtractionOptions:
    """The extraction that ``cfg`` names, of maps of ``kind`` of one layer, or of one of ``heads``.

    Raises:
        UsageError: it names several heads, or heads of a kind that has none.
    """
    if heads is not None and kind not in HEAD_KINDS:
        raise UsageError(
            f"--norm-heads {cfg.norm_heads} with --norm-map {kind}: that kind has maps of whole layers only: "
            f"expected one of {', '.join(HEAD_KINDS)}, or no --norm-heads"
        )
    if heads is not None and len(heads) > 1:
        raise UsageError(f"--norm-alignments reads one head or the whole layer, not --norm-heads {cfg.norm_heads}")
    return ExtractionOptions(
        kind=kind,
        layer=layer,
        head=heads[0] if heads else None,
        setting=str(cfg.norm_setting),
        rule=str(cfg.norm_rule),
        null=cfg.norm_null,
        final_punctuation=bool(cfg.norm_final_punctuation),
    )


def parse_numbers(text: Any, option: str, count: int) -> tuple[int, ...]:
    """The numbers, from 0 to ``count`` - 1, that the value ``text`` of ``option`` lists.

    Raises:
        UsageError: it is no such list.
    """
    try:
        numbers = tuple(int(part) for part in str(text).split(","))
    except ValueError:
        raise UsageError(f"{option} {text!r}: expected numbers separated by commas, such as 0,2") from None
    if len(set(numbers)) != len(numbers):
        raise UsageError(f"{option} {text!r}: names a number twice: expected each once")
    for number in numbers:
        _check_number(number, option, count)
    return numbers


def _check_number(number: int, option: str, count: int) -> None:
    if not 0 <= number < count:
        raise UsageError(f"{option} {number}: the model has {count}, counted from 0: expected 0 to {count - 1}")


def parse_kinds(text: str, option: str, known: Sequence[str]) -> tuple[str, ...]:
    """The map kinds, of ``known``, that the value ``text`` of ``option`` lists, each once.

    Raises:
        UsageError: it is no such list.
    """
    kinds = tuple(part.strip() for part in text.split(",") if part.strip())
    if not kinds or any(kind not in known for kind in kinds):
        raise UsageError(f"{option} {text!r}: expected some of {', '.join(known)}")
    return tuple(dict.fromkeys(kinds))
