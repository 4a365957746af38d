"""Files as other aligners write them, read as docs/other-aligners.md says; sentences and links are our own."""

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from alignment_eval.commands import main
from tests.facts import says

PAGE = (Path(__file__).resolve().parents[3] / "docs/other-aligners.md").read_text(encoding="utf-8")

# source ||| target ||| gold from 1 ||| links of the hypothesis from 0
TEXT = """\
er hat gestern das neue Buch gelesen . ||| he read the new book yesterday .
 ||| 1-1 2p2 7-2 4-3 5-4 6-5 3-6 8-7 ||| 0-0 2-5 3-2 4-3 5-4 6-1 7-6
morgen wollen wir den Turm sehen . ||| we want to see the tower tomorrow .
 ||| 3-1 2-2 6p3 6-4 4-5 5-6 1-7 7-8 ||| 0-6 1-1 2-0 3-4 4-5 5-2 5-3 6-7
ja . ||| oh yes indeed .
 ||| 1-2 2-4 |||
wenn es regnet , bleiben wir zu Hause . ||| we stay at home when it rains .
 ||| 6-1 5-2 7-3 8-4 1-5 2-6 3-7 9-8 ||| 0-4 1-5 2-6 3-3 4-1 5-0 7-3 8-7
"""
SENTENCES = [tuple(map(str.strip, row.split("|||"))) for row in TEXT.replace("\n |||", " |||").splitlines()]
PHARAOH = [row[3] for row in SENTENCES]
# 23 links, 24 sure ones in the gold; 21 are sure, 22 possible
AER = 1 - (21 + 22) / (23 + 24)
LINKS = [[tuple(map(int, link.split("-"))) for link in line.split()] for line in PHARAOH]


def lines(*rows):
    return "".join(f"{row}\n" for row in rows)


def written(base=0, swap=False, end=""):
    shown = [[(i + base, j + base)[:: -1 if swap else 1] for i, j in links] for links in LINKS]
    return lines(*(" ".join(f"{i}-{j}" for i, j in links) + end for links in shown))


def a3(n):
    """Sentence n as GIZA++ writes it; words without a link are those of NULL."""
    source, target = (side.split() for side in SENTENCES[n][:2])
    linked = [[j for i, j in LINKS[n] if i == k] for k in range(len(source))]
    free = [j for j in range(len(target)) if all(j != k for _, k in LINKS[n])]
    words = (
        f"{word} ({{ {''.join(f'{j + 1} ' for j in js)}}})" for word, js in zip(("NULL", *source), (free, *linked))
    )
    sizes = f"source length {len(source)} target length {len(target)}"
    heading = f"# Sentence pair ({n + 1}) {sizes} alignment score : 3.5e-07"
    return lines(heading, " ".join(target) + " ", " ".join(words) + " ")


PROBABILITIES = [[0.25 + 0.5 * (i == j) for i, j in links] for links in LINKS]
FILES = {
    # links in the order of a set; the probabilities in the same order, in another file
    "awesome": lines(*(" ".join(reversed(line.split())) for line in PHARAOH)),
    "awesome.prob": lines(*(" ".join(map(str, reversed(row))) for row in PROBABILITIES)),
    "plain": written(),  # SimAlign, eflomal forward, fast_align
    "simalign.script": lines(*(f"{n}\t{line}" for n, line in enumerate(PHARAOH))),
    "simalign.probs": lines(*(f"{n}\t{' '.join(f'{k}-.134-.201' for k in x.split())}" for n, x in enumerate(PHARAOH))),
    "eflomal.r": lines(*(" ".join(sorted(line.split(), key=lambda link: int(link[2:]))) for line in PHARAOH)),
    "fast_align.s": lines(*(f"{line} ||| {-10.5 - n}" for n, line in enumerate(PHARAOH))),
    "opennmt": lines(*(f"{target} ||| {links}" for (_, target, *_), links in zip(SENTENCES, PHARAOH))),
    "sil": lines(*(" ".join(f"{link}:0.25:0.125" for link in line.split()) for line in PHARAOH)),
    "exchanged": written(swap=True),  # fast_align -r, LILT
    "moses": written(end=" "),
    "mask-align": written(base=1),
    "fairseq": "2026-01-01 10:00:00 | INFO | fairseq.tasks | test 4 examples\n"
    + lines(
        *(
            f"S-{n}\t{SENTENCES[n][0]}\nT-{n}\t{SENTENCES[n][1]}\nH-{n}\t-0.5\t{SENTENCES[n][1]}\n"
            f"D-{n}\t-0.5\t{SENTENCES[n][1]}\nP-{n}\t-0.5 -0.25\nA-{n}\t{' '.join(reversed(PHARAOH[n].split()))}"
            for n in (3, 0, 1, 2)
        )
    )
    + "Generate test with beam=5: BLEU4 = 20.00\n",
    # the parts of MGIZA are not in the order of the text
    "giza.a3": "".join(a3(n) for n in (2, 3, 0, 1)),
}
SCORED = lines(*(" ".join(f"{i}-{j}:{p}" for (i, j), p in zip(links, row)) for links, row in zip(LINKS, PROBABILITIES)))


TEXTS = ("--source", "source", "--target", "target")
#: Files that need no option.
PLAIN = ["awesome", "plain", "eflomal.r", "moses", "fairseq", "simalign.script", "fast_align.s", "giza.a3", "opennmt"]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a command where the files are: exit status, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    texts = {name: lines(*(row[k] for row in SENTENCES)) for k, name in enumerate(("source", "target", "gold"))}
    for name, text in {**FILES, **texts}.items():
        Path(name).write_text(text, encoding="utf-8")

    def command(*arguments):
        status = main(arguments)
        return status, *capsys.readouterr()

    return command


def score(run, file, *options):
    return run("score", "--gold", "gold", "--gold-base", "1", file, "--format", "json", *options)


def block(start):
    """The shell block of the documentation whose first command begins so."""
    blocks = [part.split("```")[0] for part in PAGE.split("```sh\n")[1:]]
    (found,) = (part for part in blocks if re.match(rf"(#.*\n)*{start}", part))
    return found


@pytest.mark.parametrize("file", [*PLAIN, "mask-align", "sil", "simalign.probs"])
def test_the_documented_options_read_it(run, file):
    options = ("--hyp-base", "1") if file == "mask-align" else ()
    for texts in (TEXTS, ()):
        status, out, err = score(run, file, *options, *texts)
        assert (status, json.loads(out)["aer"]) == (0, pytest.approx(AER))
        assert err == "" or (file in ("fairseq", "opennmt") and not texts)


def test_the_documented_commands_convert_it(run):
    command = block("align-eval convert FILE").replace("SRC", "source").replace("TGT", "target")
    for option, files in {"": PLAIN, "--from-swap": ["exchanged"], "--from-base 1": ["mask-align"]}.items():
        assert option in PAGE
        for file in files:
            here = command.replace("FILE", file).replace("--from-subwords auto", option)
            here = here.replace("align-eval", f"{shlex.quote(sys.executable)} -m alignment_eval")
            subprocess.run(["bash", "-c", f"set -o pipefail; {here}"], check=True)
            assert Path("links").read_text() == lines(*PHARAOH), here


def test_links_and_probabilities_of_awesome_align(run):
    recipe = block("paste")
    recipe = recipe.replace("PROBABILITIES", "awesome.prob").replace("FILE", "awesome")
    Path("scored").write_bytes(subprocess.run(["bash", "-c", recipe], capture_output=True, check=True).stdout)
    status, out, err = run("convert", "scored", "--to", "scored", *TEXTS)
    assert (status, out, err) == (0, SCORED, "")
    status, out, _ = run("convert", "scored", "--to", "scored", "--min-confidence", "0.5")
    assert (status, len(out.split())) == (0, sum(i == j for links in LINKS for i, j in links))


def test_forgotten_direction(run):
    status, out, err = score(run, "exchanged", *TEXTS)
    assert (status, out) == (1, "")
    assert says(err, "exchanged all links are inside … convert --from-swap --to pharaoh")
    status, out, err = run("convert", "exchanged", "--to", "pharaoh", *TEXTS)
    assert (status, out) == (1, "")
    assert says(err, "exchanged all links are inside … give --from-swap")
