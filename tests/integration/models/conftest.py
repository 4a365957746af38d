"""Small multilingual models of an invented language, trained once; ways in which models are told their languages."""

import random
from dataclasses import dataclass

import pytest

from tests.integration.conftest import binarise

MULTI, BART = "translation_multi_simple_epoch", "translation_from_pretrained_bart"
PIECES = ("ba", "ki", "lo", "mu", "ne", "ra")
GENERATE = ["--beam", 3, "--nbest", 2, "--max-len-b", 9, "--min-len", 2]
SCORE = ["--score-reference"]
PREFIX = [*GENERATE, "--prefix-size", 2]
EXTRACTION = ["--kind", "attn_n", "--heads", "1", "--setting", "awo", "--rule", "kobayashi2020"]


@dataclass(frozen=True)
class Kind:
    """A way of naming languages: the task, its options, and what the sides of "w1 w2" become."""

    task: str
    options: tuple[str, ...]
    source: tuple[str, ...]
    target: tuple[str, ...]


PAIRS = ("--lang-pairs", "xx-yy,yy-xx")
KINDS = {
    "m2m": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok"),
        ("__xx__", "…", "</s>"),
        ("__yy__", "…", "</s>"),
    ),
    "to-target": Kind(MULTI, (*PAIRS, "--encoder-langtok", "tgt"), ("__yy__", "…", "</s>"), ("…", "</s>")),
    "replacing": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok", "--lang-tok-replacing-bos-eos"),
        ("…", "__xx__"),
        ("…", "</s>"),
    ),
    "mbart50": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok", "--lang-tok-style", "mbart"),
        ("[xx]", "…", "</s>"),
        ("[yy]", "…", "</s>"),
    ),
    "mbart": Kind(BART, ("--langs", "xx,yy"), ("…", "</s>", "[xx]"), ("…", "</s>", "[yy]")),
    "mbart-bos": Kind(
        BART, ("--langs", "xx,yy", "--prepend-bos"), ("<s>", "…", "</s>", "[xx]"), ("<s>", "…", "</s>", "[yy]")
    ),
}


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
