"""Cuts lines that are paragraphs into sentences, by sentencex, which knows some 300 languages."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.metadata import version

from alignment_eval.errors import InputError
from fairseq_norm_plugin.text.normalise import is_visible


def sentence_splitter(language: str) -> Callable[[str], list[str]]:
    """What cuts a text of a language into sentences, which join to the text.

    The language may have more parts (``de_DE``); a language that sentencex does not know is cut as English.
    """
    try:
        from sentencex import segment
    except ImportError as error:
        raise InputError("cutting lines into sentences needs sentencex: pip install sentencex") from error
    if not language:
        raise InputError("the languages of the model are not known: state source and target language (-s, -t)")
    code = re.split("[-_]", language)[0].lower()

    def split(text: str) -> list[str]:
        sentences: list[str] = []
        for part in segment(code, text):
            if sentences and not (is_visible(part) and is_visible(sentences[-1])):
                sentences[-1] += part
            else:
                sentences.append(part)
        return sentences or [text]

    return split


def splitter_name() -> str:
    """The splitter, as signatures name it."""
    return f"sentencex-{version('sentencex')}"
