"""Writes the page of a report: one HTML file that needs no network.

Its Content-Security-Policy admits only its script and its style sheet, by their hashes.  Data are in base64
(:mod:`alignment_eval.report.encoding`); jinja2 escapes all other text.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import groupby
from operator import attrgetter
from typing import Any

import jinja2
from markupsafe import Markup

from alignment_eval import __version__
from alignment_eval.figures.names import kind_name, layer_label
from alignment_eval.report.build import MapScore, Report, lowest
from alignment_eval.report.encoding import ERROR
from alignment_eval.scoring.tables import interval_text, percent


def render(report: Report, title: str, signature: str, provenance: Mapping[str, Any]) -> str:
    """The HTML of a report.

    ``provenance`` is other information on the records, shown as JSON.
    """
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_asset), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters.update(percent=percent, interval=interval_text, layer=layer_label, kind=kind_name)
    script, style = _asset("report.js"), _asset("report.css")
    return environment.get_template("template.html").render(
        report=report,
        title=title,
        signature=signature,
        provenance=json.dumps(provenance, indent=1, ensure_ascii=False, default=str),
        version=__version__,
        error=f"{math.ceil(1000 * ERROR) / 10:.1f}",  # in %, not less than it is
        script=Markup(script),  # safe: the script and the style sheet are our own files
        style=Markup(style),
        policy=f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; "
        f"base-uri 'none'; form-action 'none'",
        groups=_groups(report.maps),
    )


@dataclass(frozen=True)
class Group:
    """The maps of one kind and setting; each of ``rows`` has the maps of a layer, with the whole layer last."""

    kind: str
    setting: str
    rows: list[list[MapScore]]

    @property
    def best_layer(self) -> MapScore:
        """The whole layer with the lowest AER."""
        return lowest(row[-1] for row in self.rows)

    @property
    def best_head(self) -> MapScore | None:
        """The head with the lowest AER; None for kinds without head maps."""
        heads = [entry for row in self.rows for entry in row[:-1]]
        return lowest(heads) if heads else None


def _groups(maps: Iterable[MapScore]) -> list[Group]:
    """The groups in the order of the page."""
    groups = (
        (key, [list(row) for _, row in groupby(entries, key=attrgetter("layer"))])
        for key, entries in groupby(maps, key=attrgetter("kind", "setting"))
    )
    return [Group(*key, rows) for key, rows in groups]


def _asset(name: str) -> str:
    return files("alignment_eval.report").joinpath(name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """The hash as a source in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}'"
