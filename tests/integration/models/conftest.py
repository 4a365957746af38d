"""Small multilingual models of an invented language, trained once."""

import random

import pytest

from tests.integration.conftest import binarise
from tests.integration.models.tags import BART, KINDS, MULTI, PIECES


@pytest.fixture(scope="session")
def lines():
    """Pairs of SentencePiece text; the target is the source backwards."""
    rng = random.Random(5)
    pairs = []
    for _ in range(48):
        words = [[rng.choice(PIECES) for _ in range(rng.randint(1, 3))] for _ in range(rng.randint(1, 6))]
        pairs.append(tuple(" ".join("▁" + " ".join(word) for word in side) for side in (words, words[::-1])))
    return pairs


@pytest.fixture(scope="session")
def corpus(lines, made_once):
    """``lines`` binarised: train all, valid and test the first 9."""
    return made_once("multilingual", lambda directory: binarise(directory, [lines, lines[:9], lines[:9]])) / "bin"


@pytest.fixture(scope="session")
def mbart(trained, corpus):
    """Train a small mBART under our task, once a name."""

    def make(name, *extra, updates=30):
        sizes = [f"--{side}-{what}" for side in ("encoder", "decoder") for what in ("layers", "attention-heads")]
        small = [word for size in sizes for word in (size, 2)]
        small += ["--encoder-embed-dim", 32, "--encoder-ffn-embed-dim", 48, "--encoder-normalize-before"]
        small += ["--decoder-normalize-before", "--layernorm-embedding", "-s", "xx", "-t", "yy"]
        words = [*small, *KINDS["mbart"].options, *extra]
        return trained(name, *words, data=corpus, arch="mbart_base", task=BART + "_norm", updates=updates)

    return make


@pytest.fixture(scope="session")
def model_of(trained, mbart, corpus):
    """The checkpoint for a kind: one pre-norm Transformer, trained by fairseq's task, and one mBART."""

    def make(name):
        if name.startswith("mbart"):  # their dictionaries are the same
            return mbart("mbart")
        pre_norm = ["--encoder-normalize-before", "--decoder-normalize-before", "--share-all-embeddings"]
        return trained("m2m", *pre_norm, *KINDS["m2m"].options, data=corpus, task=MULTI, updates=30)

    return make


@pytest.fixture
def run(run_generate, corpus, model_of):
    """Run fairseq's task, with a batching that loses no sentence, or ours, of a kind."""

    def either(name, *extra, ours=True, languages=("-s", "xx", "-t", "yy"), path=None):
        kind = KINDS[name]
        words = [corpus, "--path", path or model_of(name), "--task", kind.task + ("_norm" if ours else "")]
        return run_generate(*words, *languages, *kind.options, "--required-batch-size-multiple", 1, *extra)

    return either
