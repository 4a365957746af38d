"""How robust the defaults of norm-align are, with the bundled models (docs/reproduction-tables.md).

AER of vilar508 by the number of pairs that are aligned together, by sentence length, of cased, exchanged and shifted
text; and on text without gold, how far both directions agree.  Each text is read by the models once.  Tables go to
stdout; links of the whole set, one file a method, to OUT/links.
"""

from __future__ import annotations

import argparse
import lzma
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from bundled import BOTH, FORWARD, LEXICON, REVERSE, Models, Text, both_ways, links_of, read, read_pairs, write_links
from experiment_steps import FILES, TEST
from experiment_tables import markdown

from alignment_eval.extraction.options import ExtractionOptions, MapName, MapNames
from alignment_eval.formats.reading import ReadOptions, read_gold
from alignment_eval.links.table import GoldSentence, Links, transpose
from alignment_eval.scoring.aer import score
from fairseq_norm_plugin.aligning.checking import mismatch_warning, sampled_pairs
from fairseq_norm_plugin.aligning.text import TokenPair

#: Upper limits of the length classes, in source words.
LENGTHS = (10, 20, 30, 40)
#: The method of 2020: the layer of the lowest AER on cmu150, norms, argmax with null.
PAPER = {
    way: ExtractionOptions("attn_n", heads=MapNames([MapName(0)]), setting="awi", rule="kobayashi2020", null="allow")
    for way in (FORWARD, REVERSE)
}
#: Which lines of the training text have no gold but a domain: pairs of each that are read.
SAMPLED = 200


def dice(ones: Sequence[Links], others: Sequence[Links]) -> float:
    """Twice the common links, divided by all links of both."""
    common = sum(len(one & other) for one, other in zip(ones, others))
    return 2 * common / max(1, sum(len(one) + len(other) for one, other in zip(ones, others)))


def agreement(text: Text) -> float:
    """How far the links of the two directions, each alone without a lexicon, agree (Dice)."""
    return dice(text.all(FORWARD), text.all(REVERSE))


def by_number(text: Text, gold: Sequence[GoldSentence], draws: int) -> str:
    """AER with a lexicon of so many pairs: the text is cut at random into parts that are aligned one by one."""
    lines = []
    for name in (BOTH, FORWARD, REVERSE):
        whole = score(text.all(name), gold).aer
        cells = [name, f"{100 * whole:.2f}"]
        for size in (1, 10, 100):
            figures = [100 * cut(text, gold, name + LEXICON, size, seed) for seed in range(1 if size == 1 else draws)]
            spread = "" if size == 1 else f" ± {np.std(figures, ddof=1):.2f}"
            cells.append(f"{np.mean(figures):.2f}{spread}")
        lines.append([*cells, f"{100 * score(text.all(name + LEXICON), gold).aer:.2f}"])
    return markdown(["model", "no lexicon, any number", "1", "10", "100", "508"], lines)


def cut(text: Text, gold: Sequence[GoldSentence], name: str, size: int, seed: int) -> float:
    """AER of the text, cut at random into parts of ``size`` pairs."""
    order = np.random.default_rng(seed).permutation(len(gold)).tolist()
    found: dict[int, Links] = {}
    for begin in range(0, len(order), size):
        part = order[begin : begin + size]
        found.update(zip(part, text.links(name, part)))
    return score([found[n] for n in range(len(gold))], gold).aer


def by_length(text: Text, gold: Sequence[GoldSentence]) -> str:
    """AER by the number of source words."""
    names = [way + lexicon for way in (BOTH, FORWARD, REVERSE) for lexicon in ("", LEXICON)]
    links = {name: text.all(name) for name in names}
    lines = []
    for low, high in zip((0, *LENGTHS), (*LENGTHS, 10**6)):
        chosen = [n for n, (source, _) in enumerate(text.pairs) if low < len(source) <= high]
        if not chosen:
            continue
        part = [gold[n] for n in chosen]
        figures = [f"{100 * score([links[name][n] for n in chosen], part).aer:.2f}" for name in names]
        span = f"{low + 1} to {high}" if high < 10**6 else f"{low + 1} or more"
        lines.append([span, str(len(chosen)), *figures])
    return markdown(["German words", "pairs", *names], lines)


def damaged(models: Models, cased: Sequence[TokenPair], text: Text, gold: Sequence[GoldSentence]) -> str:
    """AER and warning for cased, exchanged and shifted text."""
    pairs = list(text.pairs)
    backwards = [GoldSentence(transpose(of.sure), transpose(of.possible)) for of in gold]
    versions: list[tuple[str, Sequence[TokenPair], Sequence[GoldSentence]]] = [
        ("as it is", pairs, gold),
        ("cased", cased, gold),
        ("source and target exchanged", [(target, source) for source, target in pairs], backwards),
    ]
    for share, where in ((0.01, "one stretch"), (0.01, "single lines"), (0.1, "one stretch")):
        versions.append((f"{100 * share:.0f} % of lines shifted, {where}", shifted(pairs, share, where), gold))
    lines = []
    for what, version, right in versions:
        warning = mismatch_warning(
            sampled_pairs(version, len(version), models.directions[FORWARD]), models.directions[FORWARD]
        )
        made = text if version is pairs else Text.of(models, version)
        figures = [f"{100 * score(made.all(name), right).aer:.2f}" for name in (BOTH, BOTH + LEXICON)]
        wrong = [n for n, (pair, own) in enumerate(zip(version, pairs)) if pair[0] == own[0] and pair[1] != own[1]]
        found = suspicious(made, wrong) if wrong and what.endswith(("stretch", "lines")) else "–"
        lines.append([what, *figures, warning or "none", found])
    header = ["text", "both", "both, lexicon", "norm-align's warning", "wrong lines among the least agreeing"]
    return markdown(header, lines)


def shifted(pairs: Sequence[TokenPair], share: float, where: str) -> list[TokenPair]:
    """A share of the pairs, one stretch or drawn at random, with the targets of the next one of them."""
    count = round(share * len(pairs))
    chance = np.random.default_rng(0)
    first = int(chance.integers(len(pairs) - count))
    lines = range(first, first + count) if where == "one stretch" else sorted(chance.permutation(len(pairs))[:count])
    found = list(pairs)
    for line, other in zip(lines, [*lines[1:], lines[0]]):
        found[line] = (pairs[line][0], pairs[other][1])
    return found


def suspicious(text: Text, wrong: Sequence[int]) -> str:
    """How many wrong lines are among as many lines whose two directions agree least."""
    ones, others = text.all(FORWARD), text.all(REVERSE)
    agreements = [dice([one], [other]) for one, other in zip(ones, others)]
    least = np.argsort(agreements, kind="stable")[: len(wrong)]
    return f"{len(set(least.tolist()) & set(wrong))} of {len(wrong)}"


def by_domain(models: Models, train: Path, text: Text) -> str:
    """Agreement of both directions by domain: a proxy, there is no gold."""
    files = [lzma.decompress((train / f"train.{what}.xz").read_bytes()).decode() for what in ("de", "en", "domain")]
    found: dict[str, list[TokenPair]] = {}
    for source, target, domain in zip(*(file.split("\n") for file in files)):
        pair = source.split(), target.split()
        if all(0 < len(side) <= 60 for side in pair):
            found.setdefault(domain.strip(), []).append(pair)
    lines = [[TEST, str(len(text.pairs)), mean_length(text.pairs), f"{100 * agreement(text):.1f}"]]
    for domain in sorted(found):
        chosen = np.random.default_rng(0).permutation(len(found[domain]))[:SAMPLED]
        pairs = [found[domain][n] for n in chosen]
        lines.append([domain, str(len(pairs)), mean_length(pairs), f"{100 * agreement(Text.of(models, pairs)):.1f}"])
    return markdown(["domain", "pairs", "German words a pair", "agreement (Dice), %"], lines)


def mean_length(pairs: Sequence[TokenPair]) -> str:
    return f"{np.mean([len(source) for source, _ in pairs]):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gold", type=Path, required=True, metavar="DIR", help="with vilar508")
    parser.add_argument("--train", type=Path, metavar="DIR", help="with train.de.xz, train.en.xz and train.domain.xz")
    parser.add_argument("--models", type=Path, default=Path("data/demo"), metavar="DIR")
    parser.add_argument("--draws", type=int, default=5, metavar="N", help="ways to cut the text into parts")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR")
    args = parser.parse_args()
    folder = args.gold / TEST
    source, target, talp = (folder / name for name in FILES[TEST])
    gold = list(read_gold(str(talp), ReadOptions(base="1")))
    models = Models(args.models)
    text = Text.of(models, read_pairs(source, target))
    for name in (way + lexicon for way in (BOTH, FORWARD, REVERSE) for lexicon in ("", LEXICON)):
        write_links(args.out / "links" / f"{name.replace(', ', '-')}.pharaoh", text.all(name))
    for way, options in PAPER.items():
        (found,) = read(models.directions[way], [options], both_ways(text.pairs)[way])
        write_links(args.out / "links" / f"{way}-2020.pharaoh", links_of(way, found, options))
    print("### Number of pairs", by_number(text, gold, args.draws), sep="\n\n", end="\n\n", flush=True)
    print("### Length", by_length(text, gold), sep="\n\n", end="\n\n", flush=True)
    cased = read_pairs(folder / "test.uc.de", folder / "test.uc.en", lower=False)
    print("### Damaged text", damaged(models, cased, text, gold), sep="\n\n", end="\n\n", flush=True)
    if args.train:
        print("### Domains", by_domain(models, args.train, text), sep="\n\n", flush=True)


if __name__ == "__main__":
    main()
