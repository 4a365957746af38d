from dataclasses import replace

import pytest
from matplotlib import pyplot

from tests.eval.figures.pages import HOSTILE


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def corpus(make_sentence):
    """Sentences of layers 1 and 4."""
    sentences = [
        make_sentence(3, source="a@@ b@@ c d e </s>", target="x y@@ z@@ w . </s>"),
        make_sentence(0),
        make_sentence(4, source=f"{HOSTILE} a'\"&amp; </s>", target="<!-- ]]> </s>"),
        make_sentence(2, source="</s>", target="x </s>"),
        make_sentence(1, status="too long"),
    ]
    return [replace(sentence, layers=(1, 4)) for sentence in sentences]
