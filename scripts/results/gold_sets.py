"""The gold sets of docs/reproduction.md, and what the scripts of this folder share."""

import os
import shlex
import subprocess
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import alignment_eval as ae
from alignment_eval.command_line import exit_status
from alignment_eval.errors import InputError
from alignment_eval.links.formats import Links
from alignment_eval.scoring.aer import Score

TEST, DEV = "vilar508", "cmu150"
#: Name -> the languages of source and target, the files of both texts and of the gold, and the gold's index base.
SETS = {
    TEST: (("de", "en"), ("test.de", "test.en", "alignment.talp"), 1),
    DEV: (("de", "en"), ("dev.de", "dev.en", "dev.talp"), 1),
    "hansards447": (("en", "fr"), ("src.en", "tgt.fr", "gold.pharaoh"), 0),
    "czenali2500": (("cs", "en"), ("src.cs", "tgt.en", "gold.talp"), 0),
    "sv-en-ges864": (("en", "sv"), ("src.en", "tgt.sv", "gold.talp"), 0),
}
NORM_ALIGN = (sys.executable, "-m", "fairseq_norm_plugin.align.cli")
#: The bundled models, by the language that they translate from.
DEMO = Path("data/demo")
CHECKPOINTS = {"de": DEMO / "checkpoint.pt", "en": DEMO / "checkpoint.en-de.pt"}


class Gold:
    """A gold set in ``folder``/``name``, and its texts, lowercased as the models' text is, in ``out``."""

    def __init__(self, folder: Path, name: str, out: Path) -> None:
        self.name = name
        self.languages, files, base = SETS[name]
        *texts, gold = (folder / name / file for file in files)
        for file in (*texts, gold):
            if not file.is_file():
                raise InputError(f"{file}: no such file; {folder} must have {name}/ with {', '.join(files)}")
        self.links = ae.read_gold(gold, base)
        both = zip(self.languages, texts)
        self.texts = [write(out / "text" / f"{name}.{language}", lowercased(text)) for language, text in both]

    def score(self, links: Iterable[Links]) -> Score:
        """The score of source-target links."""
        return ae.score(links, self.links)

    def aer(self, links: Path) -> str:
        """AER in % of a file of source-target links."""
        return f"{100 * self.score(ae.read_links(links)).aer:.2f}"

    def p(self, baseline: Path, links: Path) -> float | None:
        """The p of AER in the paired randomisation test."""
        return ae.compare(ae.read_links(baseline), ae.read_links(links), self.links)["aer"].p_randomisation


def run_script(main: Callable[[], None]) -> None:
    """Run a script; bad input ends it with one sentence."""
    sys.exit(exit_status(Path(sys.argv[0]).name, Namespace, lambda _: main()))


def make(path: Path, *words: object, env: Mapping[str, str] | None = None) -> Path:
    """Run the command that writes ``path``, unless it is there already."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        line = [str(word) for word in words]
        print(shlex.join(line), file=sys.stderr, flush=True)
        subprocess.run(line, check=True, stdout=sys.stderr, env={**os.environ, "OMP_NUM_THREADS": "1", **(env or {})})
    return path


def lowercased(path: Path) -> list[str]:
    """The lines of a text."""
    return path.read_text(encoding="utf-8").lower().split("\n")[:-1]


def write(path: Path, lines: Iterable[str]) -> Path:
    """Write lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, ["---"] * len(header), *rows))
