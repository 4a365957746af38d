"""Ways in which models are told their languages, and options of their runs."""

from dataclasses import dataclass

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
    first: str  # input of the decoder's first step


PAIRS = ("--lang-pairs", "xx-yy,yy-xx")
KINDS = {
    "m2m": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok"),
        ("__xx__", "…", "</s>"),
        ("__yy__", "…", "</s>"),
        "</s>",
    ),
    "to-target": Kind(MULTI, (*PAIRS, "--encoder-langtok", "tgt"), ("__yy__", "…", "</s>"), ("…", "</s>"), "</s>"),
    "replacing": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok", "--lang-tok-replacing-bos-eos"),
        ("…", "__xx__"),
        ("…", "</s>"),
        "__yy__",
    ),
    "mbart50": Kind(
        MULTI,
        (*PAIRS, "--encoder-langtok", "src", "--decoder-langtok", "--lang-tok-style", "mbart"),
        ("[xx]", "…", "</s>"),
        ("[yy]", "…", "</s>"),
        "</s>",
    ),
    "mbart": Kind(BART, ("--langs", "xx,yy"), ("…", "</s>", "[xx]"), ("…", "</s>", "[yy]"), "[yy]"),
    "mbart-bos": Kind(
        BART,
        ("--langs", "xx,yy", "--prepend-bos"),
        ("<s>", "…", "</s>", "[xx]"),
        ("<s>", "…", "</s>", "[yy]"),
        "[yy]",
    ),
}
