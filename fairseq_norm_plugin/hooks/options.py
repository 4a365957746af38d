"""The options that the plugin adds to a fairseq task, and their checks."""

# No `from __future__ import annotations` here: fairseq reads the field types at run time.
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.tasks.masked_lm import MaskedLMConfig
from omegaconf import OmegaConf

from alignment_eval.command_line import option
from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import DEFAULTS, RULE_NAMES, AlignmentMethod, ExtractionOptions, MapName, MapNames
from alignment_eval.files import check_distinct, signature_file
from alignment_eval.maps.sentence import DEFAULT_KINDS, KINDS, MARKS, kinds_help, mixing_kinds
from alignment_eval.parts import parts_directory
from alignment_eval.profiles.chosen import SETTING_HELP, ChosenMethod
from fairseq_norm_plugin.checkpoints.read import PATHS
from fairseq_norm_plugin.hooks.generator import NormOptions

#: The folder of the pictures of validations in fairseq's ``--save-dir``.
FOLDER = "aer-picture"
#: Kinds of mixing ratios that every block has; decoder self-attention is not followed by a feed-forward network.
MONITORED_MIXING = tuple(kind for kind in mixing_kinds() if not KINDS[kind].feed_forward)


@dataclass
class MaskedLMNormConfig(MaskedLMConfig):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's options, which mask nothing unless they are told to."""

    mask_prob: float = option("share of tokens that are masked as in pretraining, by the numbers of --seed", 0.0)


@dataclass
class NormConfig(FairseqDataclass):  # type: ignore[misc]  # fairseq is untyped
    """Options of a norm task; with the defaults the task behaves like fairseq's own.

    A given option wins over the profile, even if it names the default.
    """

    norm_map: Optional[str] = option(
        f"map of --print-alignment and --aer-gold, {' or '.join(DEFAULT_KINDS)}, or of --norm-alignments, any of "
        f"{kinds_help()} (default: {DEFAULTS.kind})"
    )
    norm_layer: Optional[int] = option(
        "decoder layer of that map, counted from 0 (papers count from 1); default: the second last, which aligns best "
        "in AWO"
    )
    norm_heads: Optional[str] = option(
        "heads of that layer to sum (norms) or average (weights), e.g. 0,3; default: all"
    )
    norm_setting: Optional[str] = option(SETTING_HELP)
    norm_alignments: Optional[str] = option(
        "file for word alignments of the best hypotheses, as Pharaoh lines in corpus order; several shards write parts "
        "to FILE.parts, for align-eval merge"
    )
    norm_rule: Optional[str] = option(
        f"extraction rule of --norm-alignments and --aer-gold: {', '.join(RULE_NAMES)} (default: {DEFAULTS.map_rule})"
    )
    norm_records: Optional[str] = option("directory for records of the maps, for one run")
    norm_record_kinds: str = option("kinds of maps to record, some of those of --norm-map", ",".join(DEFAULT_KINDS))
    norm_record_layers: Optional[str] = option("decoder layers to record, counted from 0, e.g. 0,2; default: all")
    norm_records_resume: bool = option("keep the earlier output of this shard and continue it", False)
    norm_records_overwrite: bool = option("replace the earlier output of this shard", False)
    norm_part_sentences: int = option("sentences in a part of the output; a killed run loses at most one part", 10000)
    norm_subword_mark: ChoiceEnum(["auto", *MARKS]) = option(  # type: ignore[valid-type]  # noqa: RUF009
        "subword marker; auto: detected from each dictionary", "auto"
    )
    norm_source_text: Optional[str] = option(
        "text of the binarised source, one sentence per line, in subwords or words; it shows which words unknown "
        "subwords belong to; without it, sentences where that matters get no links; with --aer-gold: SUBSET=FILE, "
        "several separated by commas"
    )
    norm_target_text: Optional[str] = option("the same for the target; needs --score-reference")
    norm_special_tokens: Optional[str] = option(
        "more tokens that, like </s>, belong to no word, separated by commas: tags in the text such as <2de>,<2fr>; "
        "multilingual tasks know their own tags"
    )
    norm_profile: Optional[str] = option(
        "profile that names the maps for --norm-alignments, unless an option names maps or a rule (default: "
        "CHECKPOINT.align.json next to the checkpoint; none: no profile)"
    )


@dataclass
class MonitorConfig(FairseqDataclass):  # type: ignore[misc]
    """Options of monitoring in training; without ``--aer-gold`` nothing is monitored."""

    aer_gold: Optional[str] = option(
        "gold alignments of validation subsets: SUBSET=FILE, several separated by commas; each validation of SUBSET "
        "logs aer (for --norm-map, --norm-layer, --norm-setting) and aer_l<layer>_{w,n}_{awo,awi}; "
        "--norm-source-text and --norm-target-text then take SUBSET=FILE, too"
    )
    aer_gold_base: Optional[str] = option("index base of the gold, 0 or 1; required with --aer-gold")
    aer_mixing: Optional[str] = option(
        f"also log mixing ratios of every block in these subsets, as mixing_<block>_l<layer>_<kind>: kinds, separated "
        f"by commas, of {', '.join(MONITORED_MIXING)}, such as attnres_n,attnresln_n"
    )
    aer_picture: Optional[int] = option(
        f"a sentence of the first of these subsets, from 0: each validation draws its map in the layer of the lowest "
        f"AER, with gold and predicted links, in SAVE_DIR/{FOLDER}, TensorBoard and W&B"
    )


def other_option(cfg: Any, group: str, name: str) -> Any:
    """An option of another group of a run, such as ``dataset``; None if there is no such run.

    ``cfg`` are the options of a task: a part of the run's configuration, or with argparse the options of all groups.
    """
    if not OmegaConf.is_config(cfg):
        return getattr(cfg, name, None)
    return OmegaConf.select(cfg._get_root(), f"{group}.{name}")  # omegaconf 2.0 (fairseq 0.12.2) knows no "..group"


_MAP, _LINKS = {"norm_map", "norm_layer", "norm_setting"}, {"norm_rule"}
_TEXT = {"norm_subword_mark", "norm_source_text", "norm_target_text", "norm_special_tokens"}
_RUN = {*_TEXT, "norm_profile", "norm_records_resume", "norm_records_overwrite", "norm_part_sentences"}
PRINT, ALIGNMENTS, RECORDS, AER_GOLD = "--print-alignment", "--norm-alignments", "--norm-records", "--aer-gold"
TRAINING = "fairseq-train with --aer-gold"
#: Options that, beside :data:`AER_GOLD`, name files of subsets: the texts of source and target.
TEXTS = ("--norm-source-text", "--norm-target-text")
#: What fairseq takes for pieces of the subset valid.
_PIECE = re.compile(r"valid\d+")
#: What reads options of the task -> these options.
USES: Mapping[str, Collection[str]] = {
    PRINT: {*_MAP, "norm_heads", "norm_special_tokens"},
    ALIGNMENTS: {"norm_alignments", *_MAP, *_LINKS, "norm_heads", *_RUN},
    RECORDS: {"norm_records", "norm_record_kinds", "norm_record_layers", *_RUN},
    AER_GOLD: {"aer_gold", "aer_gold_base", "aer_mixing", *_MAP, *_LINKS, *_TEXT},
    TRAINING: {"aer_picture"},
}


def check_used(cfg: Any, readers: Collection[str]) -> None:
    """Check that one of the ``readers`` of :data:`USES` reads each option that a command line gave."""
    used = set().union(*(USES[reader] for reader in readers))
    for known in (*fields(NormConfig), *fields(MonitorConfig)):
        value = getattr(cfg, known.name, known.default)
        by = [reader for reader, names in USES.items() if known.name in names]
        if by and known.name not in used and value != known.default:
            name = f"--{known.name.replace('_', '-')}"
            raise UsageError(f"{name} {value} has no effect here: it belongs to {' or '.join(by)}; omit {name}")


def check_command(cfg: Any, generation: Any, wanted: bool, interactive: bool) -> None:
    """Check, before a run that prints maps or (``wanted``) writes them, the options of the task and of generation."""
    for name in ("norm_records", "norm_alignments"):
        if getattr(cfg, name) == "":  # an unset variable of a shell
            raise UsageError(f"--{name.replace('_', '-')} '': the name is empty; give a name, or omit the option")
    outputs = [f"{cfg.norm_records}/part-00000-of-00001-00000.parquet"] if cfg.norm_records else []
    if cfg.norm_alignments:
        file = str(cfg.norm_alignments)
        outputs += map(str, (file, parts_directory(file), signature_file(file)))
    inputs = [getattr(cfg, name, None) for name in PATHS["task"] - {"norm_records", "norm_alignments", "data"}]
    for directory in str(cfg.data).split(":"):
        inputs += [file for file in Path(directory).glob("*") if file.suffix in (".idx", ".bin", ".txt")]
    inputs += str(other_option(cfg, "common_eval", "path") or "").split(":")
    check_distinct(outputs, [name for name in inputs if name and isinstance(name, (str, Path))])
    if interactive and str(getattr(generation, "print_alignment", None)) == "soft":
        raise UsageError("fairseq-interactive crashes on --print-alignment soft: expected hard, or fairseq-generate")
    if not (cfg.source_lang and cfg.target_lang):
        raise UsageError("--source-lang or --target-lang is missing; a run with maps needs one language pair")
    if wanted and getattr(generation, "retain_dropout", False):
        raise UsageError(
            "--retain-dropout with maps, which would be of other dropout masks than the hypotheses: omit it"
        )
    if wanted and cfg.norm_target_text and not getattr(generation, "score_reference", False):
        raise UsageError("--norm-target-text needs --score-reference: else targets are the model's own translations")
    if cfg.norm_records_resume and cfg.norm_records_overwrite:
        raise UsageError("--norm-records-resume and --norm-records-overwrite contradict each other; give one of them")
    if int(cfg.norm_part_sentences) < 1:
        raise UsageError(f"--norm-part-sentences {cfg.norm_part_sentences}: the number must be 1 or more")
    # fairseq-generate silently ignores --num-shards
    if (shards := other_option(cfg, "dataset", "num_shards")) not in (None, 1):
        raise UsageError(
            f"--num-shards {shards} has no effect in fairseq-generate; run shard k, from 0, of N with "
            f"--distributed-world-size N --distributed-rank k"
        )


def resolve(cfg: Any, layers: int, heads: int, profile: Optional[ChosenMethod] = None) -> NormOptions:
    """Check the task's options against a model; ``profile`` says how to align, unless ``cfg`` names maps."""
    maps, chosen = named_maps(cfg, layers, heads), None
    if cfg.norm_alignments:
        if len(maps.heads) > 1:
            raise UsageError(f"--norm-alignments reads one head or the whole layer, not --norm-heads {cfg.norm_heads}")
        chosen = ChosenMethod(AlignmentMethod(maps), fields=maps.fields())
        if profile is not None and not _stated(cfg):
            chosen = profile
    read = maps if chosen is None else chosen.method.forward
    read_layers = {name.layer for name in read.heads}
    record_layers, record_kinds = read_layers, {read.kind}
    if cfg.norm_records:
        record_layers = set(range(layers))
        if cfg.norm_record_layers is not None:
            named = MapNames(map(MapName, _numbers(cfg.norm_record_layers, "--norm-record-layers")))
            if beyond := named.beyond(range(layers), heads, "the model"):
                raise UsageError(f"--norm-record-layers {cfg.norm_record_layers}: {beyond}")
            record_layers = {name.layer for name in named}
        record_kinds = set(parse_kinds(cfg.norm_record_kinds, "--norm-record-kinds", tuple(KINDS)))
        if chosen is not None and not (read_layers <= record_layers and read.kind in record_kinds):
            raise UsageError(
                f"--norm-alignments reads {read.kind} of layers {', '.join(map(str, sorted(read_layers)))}, but "
                f"--norm-record-kinds {cfg.norm_record_kinds} or --norm-record-layers {cfg.norm_record_layers} does "
                f"not record them; add them there"
            )
    kinds = tuple(name for name in KINDS if name in record_kinds)
    return NormOptions(maps, kinds, tuple(sorted(record_layers)), heads, chosen)


def named_maps(cfg: Any, layers: int, heads: int) -> ExtractionOptions:
    """The maps and the rule that ``cfg`` names, or those by default, of a model with these layers and heads."""
    stated = _stated(cfg)
    # the second last layer aligns best in AWO (Kobayashi et al. 2020: layer 5 of 6, counted from 1)
    layer = int(stated.pop("layer", max(0, layers - 2)))
    numbers = _numbers(cfg.norm_heads, "--norm-heads") if "heads" in stated else [None]
    chosen = {"map": DEFAULTS.kind, "setting": DEFAULTS.setting, "rule": DEFAULTS.map_rule, **stated}
    names = MapNames(MapName(layer, head) for head in numbers)
    try:
        maps = ExtractionOptions(chosen["map"], names, setting=chosen["setting"], rule=chosen["rule"])
        if beyond := maps.heads.beyond(range(layers), heads, "the model"):
            raise UsageError(beyond)
    except UsageError as error:
        given = " ".join(f"--norm-{name} {value}" for name, value in _stated(cfg).items())
        raise UsageError(f"{given}: {error}") from None
    return maps


def _stated(cfg: Any) -> dict[str, Any]:
    """The options that name maps and their rule, as far as they are given."""
    given = {name: getattr(cfg, f"norm_{name}") for name in ("map", "layer", "heads", "setting", "rule")}
    return {name: value for name, value in given.items() if value is not None}


def _numbers(text: str, option: str) -> list[int]:
    """Different numbers that are separated by commas."""
    try:
        numbers = [int(part) for part in str(text).split(",")]
    except ValueError:
        raise UsageError(f"{option} {text!r}: give numbers separated by commas, such as 0,2") from None
    if len({*numbers}) < len(numbers):
        raise UsageError(f"{option} {text!r} has a duplicate number; give each once")
    return numbers


def parse_kinds(text: str, option: str, known: Sequence[str]) -> tuple[str, ...]:
    """Map kinds from ``known``, separated by commas; duplicates are dropped."""
    kinds = tuple(part.strip() for part in text.split(",") if part.strip())
    if not kinds or any(kind not in known for kind in kinds):
        raise UsageError(f"{option} {text!r}: choose from {', '.join(known)}")
    return tuple(dict.fromkeys(kinds))


# ---- of monitoring


def files_of_gold(cfg: Any) -> Mapping[str, Mapping[str, str]]:
    """The files of :data:`AER_GOLD` and of :data:`TEXTS`, by subset; validation must cover those of gold."""
    files: dict[str, dict[str, str]] = {name: {} for name in (AER_GOLD, *TEXTS)}
    gold = files[AER_GOLD]
    for name, of_subsets in files.items():
        text = getattr(cfg, name[2:].replace("-", "_"))
        for part in [] if text is None else str(text).split(","):
            subset, _, path = part.partition("=")
            if not (subset and path) or subset in of_subsets:
                raise UsageError(f"{name} {text!r}: give SUBSET=FILE, several separated by commas, each subset once")
            of_subsets[subset] = path
            if subset not in gold:
                raise UsageError(f"{name} {part}: subset {subset!r} has no gold; choose one of {', '.join(gold)}")
    if cfg.aer_gold_base not in ("0", "1"):
        found = "is missing" if cfg.aer_gold_base is None else f"is {cfg.aer_gold_base!r}"
        raise UsageError(
            f"--aer-gold-base {found}; give 0 or 1, the index base of the gold (a wrong base gives a wrong AER)"
        )
    stated = str(other_option(cfg, "dataset", "valid_subset"))
    for subset in gold:
        if subset not in stated.split(","):
            remedy = f"add it, such as --valid-subset {subset},valid"
            if _PIECE.fullmatch(subset):
                remedy = "fairseq takes it for a piece of valid: binarise the gold's text as test"
            raise UsageError(
                f"--aer-gold {cfg.aer_gold}: subset {subset!r} is not in --valid-subset {stated}; {remedy}"
            )
    if (steps := other_option(cfg, "dataset", "max_valid_steps")) is not None:
        raise UsageError(
            f"--aer-gold does not work with --max-valid-steps {steps}: the AER would cover a part of the gold"
        )
    return files


def best_metric(cfg: Any) -> str:
    """The metric that chooses the best checkpoint."""
    return str(other_option(cfg, "checkpoint", "best_checkpoint_metric"))


def check_best_metric(cfg: Any, logged: Sequence[str] = (), gold: Collection[str] = ()) -> None:
    """Check that an AER that chooses the best checkpoint is ``logged``, by the first subset, which has ``gold``."""
    metric, subsets = best_metric(cfg), str(other_option(cfg, "dataset", "valid_subset")).split(",")
    if not metric.startswith("aer"):
        return
    if metric not in logged:
        expected = (
            f"choose one of {', '.join(logged)}" if gold else "give --aer-gold SUBSET=FILE too, or another metric"
        )
        raise UsageError(f"--best-checkpoint-metric {metric}: no validation subset logs it; {expected}")
    if subsets[0] not in gold:
        raise UsageError(
            f"--best-checkpoint-metric {metric}: the first subset of --valid-subset {','.join(subsets)} has no gold; "
            f"give --valid-subset {','.join([*gold, *(s for s in subsets if s not in gold)])}"
        )
    lower = not metric.endswith(("precision", "recall"))
    if lower == bool(other_option(cfg, "checkpoint", "maximize_best_checkpoint_metric")):
        raise UsageError(
            f"--best-checkpoint-metric {metric}: {'smaller' if lower else 'larger'} is better; "
            f"{'omit' if lower else 'give'} --maximize-best-checkpoint-metric"
        )
