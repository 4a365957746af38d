"""The options of monitoring in training, and their checks."""

# No `from __future__ import annotations` here: fairseq reads the field types at run time.
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from fairseq.dataclass import FairseqDataclass

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.links.read import ReadOptions
from alignment_eval.maps.kinds import DEFAULT_KINDS, KINDS, mixing_kinds
from fairseq_norm_plugin.hooks.options import extraction_options, other_option, parse_kinds, resolve

#: Kinds of mixing ratios that every block has; decoder self-attention is not followed by a feed-forward network.
MONITORED_MIXING = tuple(kind for kind in mixing_kinds() if not KINDS[kind].feed_forward)

#: What fairseq takes for pieces of the subset valid.
_PIECE = re.compile(r"valid\d+")


@dataclass
class MonitorConfig(FairseqDataclass):  # type: ignore[misc]
    """Options of monitoring in training; without ``--aer-gold`` nothing is monitored."""

    aer_gold: Optional[str] = field(
        default=None,
        metadata={
            "help": "gold alignments of validation subsets: SUBSET=FILE, several separated by commas; each validation "
            "of SUBSET logs aer (for --norm-map, --norm-layer, --norm-setting) and aer_l<layer>_{w,n}_{awo,awi}; "
            "--norm-source-text and --norm-target-text then take SUBSET=FILE, too"
        },
    )
    aer_gold_base: Optional[str] = field(
        default=None, metadata={"help": "index base of the gold, 0 or 1; required with --aer-gold"}
    )
    aer_mixing: Optional[str] = field(
        default=None,
        metadata={
            "help": f"also log mixing ratios of every block in these subsets, of kinds {', '.join(MONITORED_MIXING)}, "
            f"as mixing_<block>_l<layer>_<kind>"
        },
    )


@dataclass(frozen=True)
class MonitorOptions:
    """:class:`MonitorConfig`, checked.

    Attributes:
        gold: subset -> file of its gold alignments.
        texts: subset -> files of its source and target text; None: not given.
        reading: how to read the gold.
        extraction: kind, layer and setting of ``aer``; its rule is used for all metrics.
        layers: the number of decoder layers.
        mixing: kinds of mixing ratios.
    """

    gold: Mapping[str, str]
    texts: Mapping[str, tuple[Optional[str], Optional[str]]]
    reading: ReadOptions
    extraction: ExtractionOptions
    layers: int
    mixing: tuple[str, ...]


def resolve_monitor(cfg: Any, layers: int, heads: int) -> MonitorOptions:
    """Check ``cfg``, which names gold, against a model with ``layers`` decoder layers of ``heads`` heads."""
    gold = _files_of_subsets(cfg.aer_gold, "--aer-gold")
    texts = []
    for option, value in (("--norm-source-text", cfg.norm_source_text), ("--norm-target-text", cfg.norm_target_text)):
        texts.append({} if value is None else _files_of_subsets(value, option))
        for subset in texts[-1]:
            if subset not in gold:
                raise UsageError(f"{option} {value}: subset {subset!r} has no gold; choose one of {', '.join(gold)}")
    _check_validation(cfg, gold)
    if cfg.aer_gold_base not in ("0", "1"):
        found = "is missing" if cfg.aer_gold_base is None else f"is {cfg.aer_gold_base!r}"
        raise UsageError(
            f"--aer-gold-base {found}; give 0 or 1, the index base of the gold (a wrong base gives a wrong AER)"
        )
    options = resolve(cfg, layers, heads)
    if options.kind not in DEFAULT_KINDS or options.heads is not None:
        raise UsageError(
            f"--aer-gold does not work with --norm-map {options.kind} and --norm-heads {cfg.norm_heads}; monitoring "
            f"reads whole layers with map {' or '.join(DEFAULT_KINDS)}; choose one of these and omit --norm-heads"
        )
    return MonitorOptions(
        gold=gold,
        texts={subset: (texts[0].get(subset), texts[1].get(subset)) for subset in gold},
        reading=ReadOptions(base=str(cfg.aer_gold_base)),
        extraction=extraction_options(cfg, options.kind, options.layer, None),
        layers=layers,
        mixing=() if cfg.aer_mixing is None else parse_kinds(cfg.aer_mixing, "--aer-mixing", MONITORED_MIXING),
    )


def best_metric(cfg: Any) -> str:
    """The metric that chooses the best checkpoint."""
    return str(other_option(cfg, "checkpoint", "best_checkpoint_metric"))


def check_best_metric(cfg: Any, logged: Sequence[str]) -> None:
    """Check that an AER that chooses the best checkpoint is one of the ``logged`` metrics; none without gold."""
    metric = best_metric(cfg)
    if not metric.startswith("aer") or metric in logged:
        return
    expected = f"choose one of {', '.join(logged)}" if logged else "give --aer-gold SUBSET=FILE too, or another metric"
    raise UsageError(f"--best-checkpoint-metric {metric}: no validation subset logs it; {expected}")


def _files_of_subsets(text: str, option: str) -> dict[str, str]:
    files: dict[str, str] = {}
    for part in str(text).split(","):
        subset, equals, path = part.partition("=")
        if not (subset and equals and path) or subset in files:
            raise UsageError(f"{option} {text!r}: give SUBSET=FILE, several separated by commas, each subset once")
        files[subset] = path
    return files


def _subsets_of(data: Any) -> list[str]:
    """The subsets of binarised data, by the files of its directories (``test.de-en.de.idx``)."""
    names = {file.name for directory in str(data).split(":") for file in Path(directory).glob("*.*-*.*.idx")}
    return sorted({name.split(".")[0] for name in names})


def _check_validation(cfg: Any, gold: Mapping[str, str]) -> None:
    """Check that validation covers the gold's subsets completely, and that the first subset can choose checkpoints."""
    stated = str(other_option(cfg, "dataset", "valid_subset"))
    subsets = stated.split(",")
    present = _subsets_of(cfg.data)
    for subset in gold:
        if present and subset not in present and not _PIECE.fullmatch(subset):
            raise UsageError(
                f"--aer-gold {cfg.aer_gold}: {cfg.data} has no subset {subset!r}; choose one of {', '.join(present)}"
            )
        if subset not in subsets:
            raise UsageError(
                f"--aer-gold {cfg.aer_gold}: subset {subset!r} is not in --valid-subset {stated}; "
                + (
                    "fairseq takes it for a piece of valid: binarise the gold's text as test"
                    if _PIECE.fullmatch(subset)
                    else f"add it, such as --valid-subset {subset},valid"
                )
            )
    if (steps := other_option(cfg, "dataset", "max_valid_steps")) is not None:
        raise UsageError(
            f"--aer-gold does not work with --max-valid-steps {steps}, because the AER would cover "
            f"only a part of the gold; omit --max-valid-steps"
        )
    metric = best_metric(cfg)
    if not metric.startswith("aer"):
        return
    if subsets[0] not in gold:
        raise UsageError(
            f"--best-checkpoint-metric {metric}: the first subset of --valid-subset {stated} chooses the "
            f"checkpoint, but it has no gold; give --valid-subset "
            f"{','.join([*gold, *(s for s in subsets if s not in gold)])}"
        )
    lower = not any(metric.endswith(name) for name in ("precision", "recall"))
    if lower == bool(other_option(cfg, "checkpoint", "maximize_best_checkpoint_metric")):
        raise UsageError(
            f"--best-checkpoint-metric {metric}: {'smaller' if lower else 'larger'} is better; "
            f"{'omit' if lower else 'give'} --maximize-best-checkpoint-metric"
        )
