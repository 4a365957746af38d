"""A SentencePiece model of a few lines, made once."""

import pytest

from tests import families

#: Latin text, and text of scripts without blanks.
LINES = ["das haus ist klein .", "ein kleines haus ist das nicht !", "我们今天来了。", "今天我们不来。", "猫が好きです"]
NAME = "sentencepiece.bpe.model"


@pytest.fixture(scope="session")
def sentencepiece_model(made_once):
    """The file of a BPE model."""
    make = families.sentencepiece_model
    return made_once("sentencepiece", lambda directory: make(directory / NAME, LINES * 10, 90, "bpe")) / NAME
