"""Files of tokenizers that are damaged: one sentence names them."""

import json

import pytest

from alignment_eval.errors import InputError
from fairseq_norm_plugin.transformers.text import mbart_text
from tests.facts import facts
from tests.families import tokenizer

pytest.importorskip("sentencepiece")

LANGUAGES = ("de_DE", "en_XX")


@pytest.fixture
def directory(tmp_path):
    tokenizer(tmp_path, "mbart")
    return tmp_path


def read(directory, size=500):
    return mbart_text(directory, {"vocab_size": size, "max_position_embeddings": 8}, LANGUAGES)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("special_tokens_map", {"additional_special_tokens": [{"content": 1}]}),
        ("tokenizer_config", {"added_tokens_decoder": {"x": {"content": "de_DE"}}}),
        ("tokenizer", {"added_tokens": [{"content": "de_DE", "id": -1}]}),
    ],
    ids=str,
)
def test_tokens_of_other_types(directory, file, content):
    (directory / f"{file}.json").write_text(json.dumps(content))
    with pytest.raises(InputError, match=facts(f"damaged, or not a tokenizer … {next(iter(content))}")):
        read(directory)


@pytest.mark.parametrize("name", ["sentencepiece.bpe.model", "special_tokens_map.json"])
def test_a_file_that_is_a_link_to_itself(directory, name):
    (directory / name).unlink()
    (directory / name).symlink_to(name)
    with pytest.raises(InputError, match=facts(f"{name}: a symbolic link to itself")):
        read(directory)
