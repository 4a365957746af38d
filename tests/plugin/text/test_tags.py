"""The tag that every source of a model of several target languages begins with."""

import pytest

from fairseq_norm_plugin.text.tags import source_tag
from tests.plugin.dictionaries import dictionary_of


@pytest.mark.parametrize(
    ("tokens", "stated", "language", "tag"),
    [
        (["fra", ">>fra<<", ">>spa<<"], "fra", "mul", ">>fra<<"),
        ([">>fra<<", ">>spa<<"], ">>spa<<", "fra", ">>spa<<"),
        ([">>fra<<", ">>spa<<"], None, "fra", ">>fra<<"),
        ([">>fra<<", ">>spa<<"], "none", "fra", None),
        ([">>fra<<"], None, "fr", None),
        (["<2de>", "de"], "<2de>", "en", "<2de>"),
        (["de", "<2de>"], None, "de", None),
        ([], "none", "de", None),
    ],
)
def test_stated_or_of_the_language(tokens, stated, language, tag):
    assert source_tag(dictionary_of(*tokens), stated, language) == tag
