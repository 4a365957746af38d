"""The commands that scripts/results/experiment.py runs, and the files that they make."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from alignment_eval.files import write_bytes

TEST, DEV = "vilar508", "cmu150"
FILES = {TEST: ("test.de", "test.en", "alignment.talp"), DEV: ("dev.de", "dev.en", "dev.talp")}
SUBSETS = {TEST: "test", DEV: "test1"}
KINDS = "attn_w,attn_n,attn_n_merged,attnres_n,attnresln_n,alti,alti_rollout"


class Experiment:
    """Paths and settings of one run; every method makes one kind of file, unless it exists."""

    def __init__(self, args: argparse.Namespace, forward: Path, reverse: Path, out: Path) -> None:
        self.args = args
        self.out = out
        self.models = {"de-en": forward, "en-de": reverse}

    def run(self, words: Sequence[object], makes: Path | None = None, stdout: Path | None = None) -> str:
        """Run a command unless ``makes`` exists; its output goes to ``stdout`` or is returned."""
        makes = makes or stdout
        if makes is not None and makes.exists():
            return stdout.read_text(encoding="utf-8") if stdout else ""
        line = [str(word) for word in words]
        print(shlex.join(line), file=sys.stderr, flush=True)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD": "1"}
        done = subprocess.run(line, capture_output=True, text=True, env=environment)
        if done.returncode:
            raise SystemExit(f"{shlex.join(line)} failed:\n{done.stderr[-3000:]}")
        if stdout:
            stdout.parent.mkdir(parents=True, exist_ok=True)
            write_bytes(stdout, done.stdout.encode())
        return done.stdout

    def text(self, gold: str, language: str) -> Path:
        """The words of a gold set, lowercased as the models' text is."""
        path = self.out / "text" / f"{gold}.{language}"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            text = (self.args.gold / gold / FILES[gold][("de", "en").index(language)]).read_text(encoding="utf-8")
            write_bytes(path, text.lower().encode())
        return path

    def size(self, gold: str) -> int:
        """The number of sentence pairs."""
        return self.text(gold, "de").read_text(encoding="utf-8").count("\n")

    def gold(self, gold: str, direction: str = "de-en") -> list[object]:
        """Options that read the gold links, from the source of ``direction`` to its target."""
        source, target = direction.split("-")
        texts = ["--source", self.text(gold, source), "--target", self.text(gold, target)]
        swap = ["--gold-swap"] if direction == "en-de" else []
        return [self.args.gold / gold / FILES[gold][2], "--gold-base", "1", *swap, *texts]

    def binarise(self) -> Path:
        """The sets in subwords, binarised with the models' dictionaries."""
        folder = self.out / "bin"
        for gold, language in itertools.product(FILES, ("de", "en")):
            words = ["subword-nmt", "apply-bpe", "--codes", self.args.data / "codes.bpe"]
            words += ["--input", self.text(gold, language), "--output", self.out / "text" / f"{gold}.bpe.{language}"]
            self.run(words, makes=self.out / "text" / f"{gold}.bpe.{language}")
        tests = ",".join(str(self.out / "text" / f"{gold}.bpe") for gold in FILES)
        words = ["fairseq-preprocess", "-s", "de", "-t", "en", "--testpref", tests, "--destdir", folder]
        words += ["--srcdict", self.args.data / "dict.de.txt", "--tgtdict", self.args.data / "dict.en.txt"]
        self.run(words, makes=folder)
        return folder

    def records(self, direction: str, gold: str) -> Path:
        """The maps of forced scoring."""
        folder = self.out / "records" / f"{direction}-{gold}"
        source, target = direction.split("-")
        words = ["fairseq-generate", self.binarise(), "-s", source, "-t", target, "--path", self.models[direction]]
        words += ["--user-dir", "fairseq_norm_plugin", "--task", "translation_norm", "--score-reference", "--cpu"]
        words += ["--gen-subset", SUBSETS[gold], "--max-tokens", 4000, "--norm-records", folder]
        self.run([*words, "--norm-record-kinds", KINDS], makes=folder)
        return folder

    def mixing(self, direction: str) -> Path:
        """Mixing ratios of every block, on the test text."""
        folder = self.out / "mixing" / direction
        source, target = direction.split("-")
        words = [sys.executable, "-m", "fairseq_norm_plugin.analyze", self.binarise(), "-s", source, "-t", target]
        words += ["--path", self.models[direction], "--gen-subset", "test", "--cpu", "--max-tokens", 4000]
        self.run([*words, "--out", folder], makes=folder)
        return folder

    def sweep(self, direction: str, gold: str, *extra: str) -> pd.DataFrame:
        """AER of every cell, one row each."""
        folder = self.out / "sweep" / "".join([f"{direction}-{gold}", *extra])
        words = ["align-eval", "sweep", self.records(direction, gold), "--gold", *self.gold(gold, direction), *extra]
        self.run([*words, "--out", folder], makes=folder)
        return pd.read_csv(folder / "sweep.csv")

    def choice(self, name: str, direction: str, *extra: object) -> Path:
        """A choice on the development gold, or with ``--reverse`` by agreement."""
        path = self.out / "choices" / f"{direction}-{name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        by = [] if "--reverse" in extra else ["--dev-gold", *self.gold(DEV, direction)]
        words = ["align-eval", "select", self.records(direction, DEV), *by, *extra, "-o", path, "--overwrite"]
        steps = path.with_suffix(".txt")
        self.run(words, stdout=steps)
        return path

    def links(self, name: str, direction: str, gold: str, *extra: object) -> Path:
        """Links of one set of maps and rule."""
        path = self.out / "links" / f"{direction}-{name}-{gold}.pharaoh"
        path.parent.mkdir(parents=True, exist_ok=True)
        words = ["align-eval", "extract", self.records(direction, gold), *extra, "--output", path]
        self.run(words, makes=path)
        return path

    def compare(self, baseline: Path, links: Path, direction: str) -> dict[str, Any]:
        """What differs from a baseline on the test set, with paired tests."""
        words = ["align-eval", "compare", "--gold", *self.gold(TEST, direction), "--format", "json", baseline, links]
        path = self.out / "comparisons" / f"{baseline.stem}-{links.stem}.json"
        found: dict[str, Any] = json.loads(self.run(words, stdout=path))
        return found

    def score(self, links: Path, gold: str, direction: str = "de-en") -> dict[str, Any]:
        """AER with its interval."""
        words = [
            "align-eval",
            "score",
            "--gold",
            *self.gold(gold, direction),
            links,
            "--confidence",
            "--format",
            "json",
        ]
        path = self.out / "scores" / f"{links.stem}-{direction}-{gold}.json"
        found: dict[str, Any] = json.loads(self.run(words, stdout=path))
        return found
