"""Files as other aligners write them, read as docs/other-aligners.md says; sentences and links are our own."""

import json
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from alignment_eval.cli import main
from tests.facts import says

PAGE = (Path(__file__).resolve().parents[3] / "docs/other-aligners.md").read_text(encoding="utf-8")

# source ||| target ||| gold from 1 ||| links of the hypothesis from 0
TEXT = """\
er hat gestern das neue Buch gelesen . ||| he read the new book yesterday .
 ||| 1-1 2p2 7-2 4-3 5-4 6-5 3-6 8-7 ||| 0-0 2-5 3-2 4-3 5-4 6-1 7-6
morgen wollen wir den Turm sehen . ||| we want to see the tower tomorrow .
 ||| 3-1 2-2 6p3 6-4 4-5 5-6 1-7 7-8 ||| 0-6 1-1 2-0 3-4 4-5 5-2 5-3 6-7
dort steht ein Haus . ||| there is a house .
 ||| 1-1 2-2 3-3 4-4 5-5 ||| 0-0 1-1 2-2 3-3 4-4
den Brief hat sie nicht geschrieben . ||| she did not write the letter .
 ||| 4-1 3-2 5-3 6-4 1-5 2-6 7-7 ||| 0-4 1-5 3-0 4-2 5-3 6-6
ja . ||| oh yes indeed .
 ||| 1-2 2-4 |||
wenn es regnet , bleiben wir zu Hause . ||| we stay at home when it rains .
 ||| 6-1 5-2 7-3 8-4 1-5 2-6 3-7 9-8 ||| 0-4 1-5 2-6 3-3 4-1 5-0 7-3 8-7
heute ist der Zug pünktlich . ||| the train is on time today .
 ||| 3-1 4-2 2-3 5-4 5-5 1-6 6-7 ||| 0-5 1-2 2-0 3-1 4-4 5-6
gern hilft sie ihm bei der Arbeit . ||| she likes to help him with the work .
 ||| 3-1 1-2 2-4 4-5 5-6 6-7 7-8 8-9 ||| 0-1 1-3 2-0 3-4 4-5 5-6 6-7 7-8
"""
SENTENCES = [tuple(map(str.strip, row.split("|||"))) for row in TEXT.replace("\n |||", " |||").splitlines()]
SENTENCES *= 2  # a diagnosis needs ten sentences and more
PHARAOH = [row[3] for row in SENTENCES]
# in each half 48 links, 51 sure ones in the gold; 46 are sure, 47 possible
AER = 1 - (46 + 47) / (48 + 51)
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
    "eflomal.r": lines(*(" ".join(sorted(line.split(), key=lambda link: int(link[2:]))) for line in PHARAOH)),
    "fast_align.s": lines(*(f"{line} ||| {-10.5 - n}" for n, line in enumerate(PHARAOH))),
    "exchanged": written(swap=True),  # fast_align -r, LILT
    "moses": written(end=" "),
    "mask-align": written(base=1),
    "fairseq": "2026-01-01 10:00:00 | INFO | fairseq.tasks | test 16 examples\n"
    + lines(
        *(
            f"S-{n}\t{SENTENCES[n][0]}\nT-{n}\t{SENTENCES[n][1]}\nH-{n}\t-0.5\t{SENTENCES[n][1]}\n"
            f"D-{n}\t-0.5\t{SENTENCES[n][1]}\nP-{n}\t-0.5 -0.25\nA-{n}\t{' '.join(reversed(PHARAOH[n].split()))}"
            for n in (3, 0, 7, 1, 2, 6, 4, 5, 15, 8, 14, 9, 13, 10, 12, 11)
        )
    )
    + "Generate test with beam=5: BLEU4 = 20.00\n",
    # the parts of MGIZA are not in the order of the text
    "giza.a3": "".join(a3(n) for n in (*range(4, len(SENTENCES)), *range(4))),
}
SCORED = lines(*(" ".join(f"{i}-{j}:{p}" for (i, j), p in zip(links, row)) for links, row in zip(LINKS, PROBABILITIES)))


@dataclass(frozen=True)
class Case:
    file: str
    options: tuple[str, ...] = ()
    pipe: str = ""


EXCHANGE = "exchange the hypothesis with align-eval convert --from-swap --to pharaoh"
TURN = "align-eval convert FILE --from-swap --to pharaoh"
READ = [
    *(Case(name) for name in ("awesome", "plain", "eflomal.r", "moses", "fairseq")),
    *(Case(name) for name in ("simalign.script", "fast_align.s", "giza.a3")),
    Case("exchanged", pipe=TURN),
    Case("mask-align", ("base", "1")),
]


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


def piped(case):
    """The file, through the pipe of the documentation if there is one."""
    if not case.pipe:
        return case.file
    assert f"{case.pipe} | align-eval score - " in PAGE
    command = case.pipe.replace("FILE", case.file).replace("align-eval", f"{sys.executable} -m alignment_eval")
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    Path("piped").write_bytes(done.stdout)
    return "piped"


def block(start):
    """The shell block of the documentation whose first command begins so."""
    blocks = [part.split("```")[0] for part in PAGE.split("```sh\n")[1:]]
    (found,) = (part for part in blocks if re.match(rf"(#.*\n)*{start}", part))
    return found


def options(case, role):
    return [f"--{role}-{case.options[0]}", *case.options[1:]] if case.options else []


TEXTS = ("--source", "source", "--target", "target")


@pytest.mark.parametrize("case", READ, ids=lambda case: case.file)
def test_the_documented_options_read_it(run, case):
    file = piped(case)
    status, out, err = score(run, file, *options(case, "hyp"), *TEXTS)
    assert (status, err) == (0, "")
    assert json.loads(out)["aer"] == pytest.approx(AER)
    status, out, err = score(run, file, *options(case, "hyp"))
    assert status == 0
    assert err == "" or case.file == "fairseq"
    assert json.loads(out)["aer"] == pytest.approx(AER)


def test_the_documented_commands_convert_it(run):
    names = ([case.file for case in READ if not case.options and not case.pipe], ["exchanged"])
    for command, files in zip(block("align-eval convert --to").splitlines(), (*names, ["mask-align"]), strict=True):
        for file in files:
            here = command.replace("SRC", "source").replace("TGT", "target").replace("FILE", file)
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
    file = "exchanged"
    status, out, err = score(run, file)
    assert status == 0
    assert says(err, "exchanged … convert --from-swap --to pharaoh")
    assert json.loads(out)["aer"] > 0.7
    status, out, err = score(run, file, *TEXTS)
    assert (status, out) == (1, "")
    assert says(err, "exchanged all links are inside … convert --from-swap --to pharaoh")
    status, out, err = run("convert", file, "--to", "pharaoh", *TEXTS)
    assert (status, out) == (1, "")
    assert says(err, "exchanged all links are inside … give --from-swap")
    diagnosis = json.loads(score(run, file, "--diagnose")[1])["diagnosis"]
    assert diagnosis["explanation"] == [f"{EXCHANGE} or give --gold-swap"]
