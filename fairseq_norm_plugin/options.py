"""The options that the plugin adds to a fairseq task, and what they mean once checked."""

# No `from __future__ import annotations` here: fairseq reads the field types at run time.
import re
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II

from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import RULES, ExtractionOptions
from alignment_eval.formats.detection import GOLD_FORMATS
from alignment_eval.formats.reading import ReadOptions
from alignment_eval.maps.sentence import DEFAULT_KINDS, HEAD_KINDS, KINDS
from alignment_eval.maps.subwords import MARKS
from alignment_eval.maps.words import SETTINGS
from alignment_eval.records.store import DTYPES
from fairseq_norm_plugin.maps.kinds import MIXING_KINDS


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
    norm_special_tokens: Optional[str] = field(
        default=None,
        metadata={
            "help": "further tokens that belong to no word, as </s> does, separated by commas: tags in the text such "
            "as <2de>,<2fr>; multilingual tasks know their own (docs/models.md)"
        },
    )
    # fairseq-generate ignores --num-shards without a word; the task must see it to refuse it.
    norm_num_shards: int = II("dataset.num_shards")


@dataclass
class MonitorConfig(FairseqDataclass):  # type: ignore[misc]
    """Options of monitoring in training; without ``--aer-gold`` nothing is monitored."""

    aer_gold: Optional[str] = field(
        default=None,
        metadata={
            "help": "gold alignments of validation subsets: SUBSET=FILE, several separated by commas; each validation "
            "of SUBSET then logs aer (of --norm-map, --norm-layer, --norm-setting) and aer_l<layer>_{w,n}_{awo,awi}"
        },
    )
    aer_gold_base: Optional[str] = field(
        default=None, metadata={"help": "indices of the gold count from 0 or 1; required with --aer-gold"}
    )
    aer_gold_format: Optional[str] = field(
        default=None, metadata={"help": f"format of the gold: {', '.join(GOLD_FORMATS)}; default: told from the file"}
    )
    aer_gold_swap: bool = field(
        default=False, metadata={"help": "the gold links target to source: exchange its indices"}
    )
    aer_layers: Optional[str] = field(
        default=None, metadata={"help": "decoder layers whose AER is logged, counted from 0, e.g. 0,2; default: all"}
    )
    aer_mixing: Optional[str] = field(
        default=None,
        metadata={
            "help": f"also log mixing ratios of every block in these subsets, of kinds {', '.join(MIXING_KINDS)}, as "
            f"mixing_<block>_l<layer>_<kind>"
        },
    )
    aer_strict: bool = field(
        default=False,
        metadata={"help": "stop training when monitoring fails; default: log the error, AER is inf in that validation"},
    )
    # What else a validation is steered by: interpolations, so that the task sees it.  Of a field of type bool fairseq
    # takes the text of the interpolation for its value, which is true.
    aer_valid_subset: str = II("dataset.valid_subset")
    aer_combine_valid_subsets: Any = field(default=II("dataset.combine_valid_subsets"))
    aer_max_valid_steps: Any = field(default=II("dataset.max_valid_steps"))
    aer_best_metric: str = II("checkpoint.best_checkpoint_metric")
    aer_maximize_best: Any = field(default=II("checkpoint.maximize_best_checkpoint_metric"))


def fill_interpolations(args: Namespace, options: type[FairseqDataclass]) -> None:
    """Give ``args``, which hold the options of all groups, the interpolated ones of ``options`` too."""
    for option in fields(options):
        group_and_name = re.fullmatch(r"\$\{\w+\.(\w+)\}", str(option.default))
        if group_and_name:
            setattr(args, option.name, getattr(args, group_and_name[1], None))


@dataclass(frozen=True)
class MonitorOptions:
    """:class:`MonitorConfig`, checked.

    Attributes:
        gold: subset -> file of its gold alignments.
        reading: how to read them.
        extraction: kind, layer and setting of ``aer``; its rule is that of every figure.
        layers: whose AER is logged, that of ``extraction`` among them.
        mixing: kinds of mixing ratios.
        strict: whether an error in monitoring stops training.
    """

    gold: Mapping[str, str]
    reading: ReadOptions
    extraction: ExtractionOptions
    layers: tuple[int, ...]
    mixing: tuple[str, ...]
    strict: bool


def resolve_monitor(cfg: Any, layers: int, heads: int) -> MonitorOptions:
    """Check ``cfg``, which names gold, against a model with ``layers`` decoder layers of ``heads`` heads.

    Raises:
        UsageError: an option is missing, names what is not there, or another makes its figure wrong.
    """
    gold = {}
    for part in str(cfg.aer_gold).split(","):
        subset, equals, path = part.partition("=")
        if not (subset and equals and path) or subset in gold:
            raise UsageError(
                f"--aer-gold {cfg.aer_gold!r}: expected SUBSET=FILE, each subset once, several separated by commas"
            )
        gold[subset] = path
    _check_validation(cfg, gold)
    if cfg.aer_gold_base not in ("0", "1"):
        found = "is missing" if cfg.aer_gold_base is None else f"is {cfg.aer_gold_base!r}"
        raise UsageError(
            f"--aer-gold-base {found}: expected 0 or 1, what the indices of the gold count from; a wrong one gives a "
            f"wrong AER"
        )
    if cfg.aer_gold_format not in (None, *GOLD_FORMATS):
        raise UsageError(f"--aer-gold-format {cfg.aer_gold_format!r}: expected one of {', '.join(GOLD_FORMATS)}")
    options = resolve(cfg, layers, heads)
    if options.kind not in DEFAULT_KINDS or options.heads is not None:
        raise UsageError(
            f"--aer-gold with --norm-map {options.kind} and --norm-heads {cfg.norm_heads}: monitoring reads whole "
            f"layers, by {' or '.join(DEFAULT_KINDS)}; leave --norm-heads out"
        )
    wanted = set(range(layers))
    if cfg.aer_layers is not None:
        wanted = {*_parse_numbers(cfg.aer_layers, "--aer-layers", layers), options.layer}
    return MonitorOptions(
        gold=gold,
        reading=ReadOptions(cfg.aer_gold_format, str(cfg.aer_gold_base), bool(cfg.aer_gold_swap)),
        extraction=_extraction(cfg, options.kind, options.layer, None),
        layers=tuple(sorted(wanted)),
        mixing=() if cfg.aer_mixing is None else _parse_kinds(cfg.aer_mixing, "--aer-mixing", MIXING_KINDS),
        strict=bool(cfg.aer_strict),
    )


def _check_validation(cfg: Any, gold: Mapping[str, str]) -> None:
    """Check that validation shows the gold's subsets, whole, and the one that steers first."""
    subsets = str(cfg.aer_valid_subset).split(",")
    for subset in gold:
        if subset not in subsets:
            raise UsageError(
                f"--aer-gold {cfg.aer_gold}: subset {subset!r} is not validated: --valid-subset is "
                f"{cfg.aer_valid_subset}, expected {subset} in it, such as --valid-subset {subset},valid"
            )
    if cfg.aer_combine_valid_subsets:
        raise UsageError(
            "--aer-gold with --combine-valid-subsets: sentences of all subsets in one would have the ids of others; "
            "leave the latter out"
        )
    if cfg.aer_max_valid_steps is not None:
        raise UsageError(
            f"--aer-gold with --max-valid-steps {cfg.aer_max_valid_steps}: the AER would be that of a part of the "
            f"gold; leave the latter out"
        )
    metric = str(cfg.aer_best_metric)
    if not metric.startswith("aer"):
        return
    if subsets[0] not in gold:
        raise UsageError(
            f"--best-checkpoint-metric {metric}: the first subset of --valid-subset {cfg.aer_valid_subset} steers, and "
            f"it has no gold: expected --valid-subset {','.join([*gold, *(s for s in subsets if s not in gold)])}"
        )
    lower = not any(metric.endswith(name) for name in ("precision", "recall"))
    if lower == bool(cfg.aer_maximize_best):
        raise UsageError(
            f"--best-checkpoint-metric {metric}: the {'smaller' if lower else 'larger'} the better: "
            f"{'leave out' if lower else 'expected'} --maximize-best-checkpoint-metric"
        )


@dataclass(frozen=True)
class NormOptions:
    """:class:`NormConfig`, checked against a model of so many layers and heads.

    ``layer``, ``heads`` (None: all), ``kind`` and ``setting`` name the one map that is printed and extracted;
    ``record_layers`` and ``record_kinds`` what a run keeps, for records, for the alignments file or for both.
    """

    kind: str
    layer: int
    heads: Optional[tuple[int, ...]]
    setting: str
    record_layers: tuple[int, ...]
    record_kinds: tuple[str, ...]
    extraction: Optional[ExtractionOptions]


def resolve(cfg: Any, layers: int, heads: int) -> NormOptions:
    """Check ``cfg`` against a model with ``layers`` decoder layers of ``heads`` heads.

    Raises:
        UsageError: a layer or head that the model has not, an unknown kind, or options that contradict each other.
    """
    layer = default_layer(layers) if cfg.norm_layer is None else int(cfg.norm_layer)
    _check_number(layer, "--norm-layer", layers)
    chosen = None if cfg.norm_heads is None else _parse_numbers(cfg.norm_heads, "--norm-heads", heads)
    record_layers = set(range(layers))
    if cfg.norm_record_layers is not None:
        record_layers = set(_parse_numbers(cfg.norm_record_layers, "--norm-record-layers", layers))
    record_kinds = set(_parse_kinds(cfg.norm_record_kinds, "--norm-record-kinds", tuple(KINDS)))
    kind = str(cfg.norm_map)
    if not cfg.norm_records:
        record_layers, record_kinds = {layer}, {kind}
    elif cfg.norm_alignments and not (layer in record_layers and kind in record_kinds):
        raise UsageError(
            f"--norm-alignments reads {kind} of layer {layer}, which --norm-record-kinds {cfg.norm_record_kinds} or "
            f"--norm-record-layers {cfg.norm_record_layers} leaves out: expected it among them"
        )
    return NormOptions(
        kind=kind,
        layer=layer,
        heads=chosen,
        setting=str(cfg.norm_setting),
        record_layers=tuple(sorted(record_layers)),
        record_kinds=tuple(name for name in KINDS if name in record_kinds),
        extraction=_extraction(cfg, kind, layer, chosen) if cfg.norm_alignments else None,
    )


def default_layer(layers: int) -> int:
    """The layer that aligns best in AWO: the last but one (Kobayashi et al. 2020: layer 5 of 6, counted from 1)."""
    return max(0, layers - 2)


def default_layers(layers: int) -> tuple[int, ...]:
    """The layers whose mean aligns best in AWO: the last two (docs/reproduction.md, sets chosen on cmu150)."""
    return tuple(range(default_layer(layers), layers))


def _extraction(cfg: Any, kind: str, layer: int, heads: Optional[tuple[int, ...]]) -> ExtractionOptions:
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


def _parse_numbers(text: Any, option: str, count: int) -> tuple[int, ...]:
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


def _parse_kinds(text: str, option: str, known: Sequence[str]) -> tuple[str, ...]:
    kinds = tuple(part.strip() for part in text.split(",") if part.strip())
    if not kinds or any(kind not in known for kind in kinds):
        raise UsageError(f"{option} {text!r}: expected some of {', '.join(known)}")
    return tuple(dict.fromkeys(kinds))
