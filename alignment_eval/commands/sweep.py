"""``align-eval sweep``: AER of every layer and head, as a table, JSON and heatmaps."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from alignment_eval import options
from alignment_eval.command_line import add_format, add_list, add_output, names
from alignment_eval.errors import progress_bar, say, warn_skipped
from alignment_eval.extraction.method import RULE_NAMES, RULES, ExtractionOptions, MapNames, rule_of
from alignment_eval.figures import style
from alignment_eval.files import check_directory, new_directory, signature, write_bytes, write_lines
from alignment_eval.links.files import Texts
from alignment_eval.links.formats import GoldSentence
from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.maps.words import SETTINGS
from alignment_eval.profiles.chosen import FINAL_PUNCTUATION
from alignment_eval.scoring.aer import METRICS, Counts
from alignment_eval.scoring.gold_corpus import linked_maps, with_gold
from alignment_eval.scoring.tables import TABLE_FORMATS, Table, counted, percent

ORACLE_NOTE = (
    "Layers and heads count from 0. A layer, head or rule chosen by these figures is an oracle choice on this gold: "
    "choose on one gold set, report on another."
)
EPILOG = """\
Example, after make demo:
  align-eval sweep out/demo/forced --gold data/demo/demo.talp --gold-base 1 --rules kobayashi2020 -o out/sweep
"""
_BEST_ROWS = 10
_OWN_FILES = re.compile(r"sweep\.(csv|json)|(summary|heads-.*)\.(png|svg|pdf)")
#: Columns of a sweep's table that identify a figure.
CONFIGURATION = ["kind", "setting", "rule", "null"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options.add_records(parser)
    what = "directory for table, JSON and heatmaps; only one that sweep wrote is replaced"
    add_output(parser, what, metavar="DIR", required=True)
    options.add_gold_arguments(parser)
    options.add_text_arguments(parser)
    options.add_kinds(parser)
    add_list(
        parser,
        "--settings",
        f"settings to score, of {', '.join(SETTINGS)} (default: all)",
        metavar="SETTING",
        type=lambda text: names(text.lower()),
    )
    help_ = f"extraction rules to score, of {', '.join(RULE_NAMES)} (default: {','.join(RULES)})"
    add_list(parser, "--rules", help_, metavar="RULE")
    parser.add_argument("--final-punctuation", action="store_true", help=FINAL_PUNCTUATION)
    add_format(parser, TABLE_FORMATS)
    help_ = "order the heads of a layer in heatmaps by AER, lowest first"
    parser.add_argument("--sort-heads", action="store_true", help=help_)
    style.add_figure_options(parser, several=True)


def run(args: argparse.Namespace) -> None:
    check_directory(args.output, args.overwrite, _OWN_FILES)
    records = options.read_records(args)
    assert records is not None  # RECORDS is required
    kinds, settings, given_rules = (
        list(dict.fromkeys(getattr(args, name) or known))
        for name, known in (("kinds", records.info.kinds), ("settings", SETTINGS), ("rules", RULES))
    )
    rules = list(dict.fromkeys(rule_of(rule).name for rule in given_rules))  # threshold=0.2 and threshold=.2 are one
    methods = configurations(kinds, settings, rules, args.final_punctuation)
    texts = options.texts_of(args)
    gold = options.gold_of(args, texts)
    gold.fit(records.size)
    sentences = progress_bar(records.best(), records.info.size, "sentences")
    table, skipped = sweep(sentences, list(gold), methods, texts)
    warn_skipped(skipped, records.info.size, "each counts as an empty hypothesis")
    signed = signature(
        records=records.info.signature_hash,
        **options.reading_fields("gold", gold),
        kinds=",".join(kinds),
        settings=",".join(settings),
        rules=",".join(rules),
        final_punctuation=args.final_punctuation,
    )
    content = {
        "signature": signed,
        "records": dict(records.info.signature),
        "sentences": records.info.size,
        "skipped": {str(id_): status for id_, status in sorted(skipped.items())},
        "note": ORACLE_NOTE,
        "rows": table.astype(object).where(table.notna(), None).to_dict("records"),
    }
    with new_directory(args.output, args.overwrite, _OWN_FILES) as directory:
        write_bytes(directory / "sweep.csv", [table.to_csv(index=False).encode()])
        write_lines(directory / "sweep.json", [json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)])
        save_heatmaps(table, directory, style.figure_options(args), args.figure_formats, args.sort_heads)
    for printed in _tables(table, records.info.size):
        print(*printed.lines(args.format), "", sep="\n")
    print(f"{'% ' * (args.format == 'latex')}{ORACLE_NOTE}")
    say(signed)


def configurations(
    kinds: Sequence[str], settings: Sequence[str], rules: Sequence[str], final_punctuation: bool = False
) -> list[ExtractionOptions]:
    """All combinations, with every treatment of null that each rule supports; their layer is a placeholder."""
    return [
        ExtractionOptions(kind, MapNames("0"), "mean", setting, rule, null, final_punctuation)
        for kind in kinds
        for setting in settings
        for rule in rules
        for null in rule_of(rule).nulls
    ]


def sweep(
    sentences: Iterable[SentenceMaps],
    gold: Sequence[GoldSentence],
    options: Sequence[ExtractionOptions],
    texts: Texts | None = None,
) -> tuple[pd.DataFrame, Mapping[int, str]]:
    """Score every layer and head of ``sentences`` with each of ``options``, which are :func:`configurations`.

    ``sentences``, ``gold`` and ``texts`` are those of :func:`with_gold`.

    Returns:
        One row per map (the heads of a layer, then the layer itself, which has no ``head``) and configuration.  AER,
        precision (missing where there are no links) and recall are fractions.  And the sentences without maps, which
        count as empty hypotheses: id -> status.
    """
    hits = [np.zeros((1, 1, 3), dtype=np.int64) for _ in options]  # [L, H + 1, 3] each, summed over sentences
    layers: tuple[int, ...] = ()
    skipped: dict[int, str] = {}
    for sentence, matrix in with_gold(sentences, gold, texts):
        if matrix is None:
            skipped[sentence.id] = sentence.status
            continue
        layers = sentence.layers
        hits = [summed + matrix.hits(linked) for summed, linked in zip(hits, linked_maps(sentence, options))]
    sure = sum(len(sentence.sure) for sentence in gold)  # of sentences that cannot be aligned, too
    blocks = [_block(option, hit, layers, sure) for option, hit in zip(options, hits)]
    return pd.concat(blocks, ignore_index=True), skipped


def _block(option: ExtractionOptions, hits: NDArray[np.int64], layers: Sequence[int], sure: int) -> pd.DataFrame:
    """The rows of one configuration, from its counts [L, H + 1, 3]."""
    heads = hits.shape[1] - 1
    links, links_sure, links_possible = hits.reshape(-1, 3).T
    counts = Counts(links, np.full(len(links), sure), links_sure, links_possible)
    return pd.DataFrame(
        {
            "kind": option.kind,
            "level": (["head"] * heads + ["layer"]) * len(layers),
            "layer": np.repeat(layers, heads + 1),
            "head": pd.array([*range(heads), pd.NA] * len(layers), dtype="Int64"),
            "setting": option.setting,
            "rule": option.rule,
            "null": option.null,
            **{name: metric(counts) for name, metric in METRICS.items()},
            **dict(zip(("links", "sure", "links_sure", "links_possible"), counts)),
        }
    )


def _tables(table: pd.DataFrame, sentences: int) -> Iterator[Table]:
    """The figures for a reader: AER in % of every layer, weights beside norms, and the lowest rows."""
    for (rule, null), rows in table.groupby(["rule", "null"], sort=False):
        yield _layer_table(rows, f"AER %, {counted(sentences)}, rule {rule}, null {null}")
    best = table.sort_values("aer", kind="stable").head(_BEST_ROWS)
    heads = (*CONFIGURATION, "layer", "head", "links", *(f"{metric.label} %" for metric in METRICS.values()))
    cells = [
        (
            *(getattr(row, name) for name in CONFIGURATION),
            str(row.layer),
            "-" if row.level == "layer" else str(row.head),
            str(row.links),
            *(percent(getattr(row, name)) for name in METRICS),
        )
        for row in best.itertuples()
    ]
    yield Table(f"The {len(best)} lowest AERs", heads, cells, names=len(CONFIGURATION))


def _layer_table(rows: pd.DataFrame, title: str) -> Table:
    """One line a setting and kind, one column a layer, and the best head."""
    grid = _of_layers(rows)
    lines = []
    for (setting, kind), aers in zip(grid.index, grid.to_numpy()):
        group = rows[(rows["setting"] == setting) & (rows["kind"] == kind) & (rows["level"] == "head")]
        best = group.sort_values("aer", kind="stable").head(1)
        found = [f"{percent(row.aer)} ({row.layer}, {row.head})" for row in best.itertuples()]
        lines.append((f"{setting.upper()} {kind}", *map(percent, aers), *(found or ["-"])))
    best_cells = {(int(r), 1 + int(c)) for r, c in np.argwhere(grid == np.nanmin(grid))}
    heads = ("", *(style.layer_label(int(layer)) for layer in grid.columns), "best head (layer, head)")
    return Table(title, heads, lines, best_cells)


def _of_layers(rows: pd.DataFrame) -> pd.DataFrame:
    """AER of whole layers: settings and kinds are rows, layers columns."""
    order = [(setting, kind) for setting in rows["setting"].unique() for kind in rows["kind"].unique()]
    layers = rows[rows["level"] == "layer"]
    return layers.pivot(index=["setting", "kind"], columns="layer", values="aer").reindex(order)


def save_heatmaps(
    table: pd.DataFrame, directory: Path, options: style.FigureOptions, formats: Sequence[str], sort_heads: bool = False
) -> None:
    """Draw the figures of a sweep's table into a directory.

    ``heads-<kind>-<setting>-<rule>-<null>`` has every head of a configuration; these share one colour scale, from the
    lowest to the highest AER of any head.  With ``sort_heads`` their columns are ranks in the layer.  ``summary`` has
    every whole layer, under the rule with the lowest AER.
    """
    figures = {"summary": style.draw_heatmap(*summary(table), options=options)}
    heads = table[table["level"] == "head"]
    limits = (100 * float(heads["aer"].min()), 100 * float(heads["aer"].max()))
    for key, rows in heads.groupby(CONFIGURATION, sort=False):
        kind, setting, rule, null = map(str, key)
        if sort_heads:
            rows = rows.assign(**{"rank of head": rows.groupby("layer")["aer"].rank(method="first").astype(int)})
        values = 100 * rows.pivot(index="layer", columns="rank of head" if sort_heads else "head", values="aer")
        values.index = values.index.map(style.place_name)
        heading = f"Heads: {style.kind_name(kind)}, {setting.upper()}; {style.rule_name(rule, null)}. {_lowest(rows)}"
        figure = style.draw_heatmap(values, heading, limits, options=options)
        figures["-".join(("heads", kind, setting, rule, null))] = figure
    style.save_figures(figures, directory, formats)


def summary(table: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The AER of every whole layer by setting and kind, under the rule and null with the lowest one; and a heading."""
    layers = table[table["level"] == "layer"]
    best = layers.iloc[int(layers["aer"].argmin())]
    rows = layers[(layers["rule"] == best["rule"]) & (layers["null"] == best["null"])]
    values = 100 * _of_layers(rows)
    values.index = values.index.map(lambda of_row: f"{of_row[0].upper()}, {style.kind_name(of_row[1])}")
    what = f"{style.kind_name(best['kind'])}, {best['setting'].upper()}, "
    return values, f"Whole layers; {style.rule_name(best['rule'], best['null'])}. {_lowest(rows, what)}"


def _lowest(rows: pd.DataFrame, what: str = "") -> str:
    """The lowest AER of a sweep's rows, and its place."""
    best = rows.iloc[int(rows["aer"].argmin())]
    head = int(best["head"]) if best["level"] == "head" else None
    return f"Lowest: {100 * best['aer']:.1f}, {what}{style.place_name(int(best['layer']), head)}"
