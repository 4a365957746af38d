"""A SentencePiece model of a few lines, made once."""

import io

import pytest

#: Latin text, and text of scripts without blanks.
LINES = ["das haus ist klein .", "ein kleines haus ist das nicht !", "我们今天来了。", "今天我们不来。", "猫が好きです"]


@pytest.fixture(scope="session")
def sentencepiece_model(made_once):
    """The file of a BPE model."""
    import sentencepiece

    def make(directory):
        model = io.BytesIO()
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(LINES * 30),
            model_writer=model,
            model_type="bpe",
            vocab_size=90,
            hard_vocab_limit=False,
            character_coverage=1.0,
            minloglevel=2,
        )
        (directory / "sentencepiece.bpe.model").write_bytes(model.getvalue())

    return made_once("sentencepiece", make) / "sentencepiece.bpe.model"
