from __future__ import annotations

import numpy as np
import pytest

from alignment_eval.errors import UsageError
from alignment_eval.extraction.extract import SentenceLinks, WordLinks
from alignment_eval.formats.line_style import LineStyle

LINKED = np.array([[True, False], [True, True]])
LINKS = WordLinks(LINKED, np.array([[0.25, 0.5, 0.25], [0.0, 0.75, 0.25]]))


@pytest.mark.parametrize(
    ("style", "line"),
    [
        (LineStyle(), "0-0 1-0 1-1"),
        (LineStyle(min_confidence=0.5), "1-0 1-1"),
        (LineStyle(confidences=True), "0-0:0.25 1-0:0.5 1-1:0.75"),
        (LineStyle(True, 0.6), "1-1:0.75"),
    ],
    ids=str,
)
def test_lines(style: LineStyle, line: str) -> None:
    assert style.line(LINKS) == line
    assert style.line(None) == ""


def test_links_without_confidences() -> None:
    assert LineStyle().line(SentenceLinks(LINKED)) == "0-0 1-0 1-1"
    for style in (LineStyle(confidences=True), LineStyle(min_confidence=0.5)):
        with pytest.raises(UsageError, match="no confidences"):
            style.line(SentenceLinks(LINKED))
