"""The demo's text as a user has it, raw, and norm-align of it with the bundled models, which know their text."""

from pathlib import Path

from sacremoses import MosesDetokenizer

DEMO = Path(__file__).resolve().parents[3] / "data" / "demo"
MODEL = ("--path", DEMO / "checkpoint.pt")
BOTH = (*MODEL, "--reverse-path", DEMO / "checkpoint.en-de.pt")


def raw_lines(language):
    """The 60 sentences of a language, detokenised, with a capital at the beginning."""
    detokenizer = MosesDetokenizer(lang=language)
    tokens = (DEMO / f"demo.{language}").read_text(encoding="utf-8").splitlines()
    lines = [detokenizer.detokenize(line.split(), unescape=False) for line in tokens]
    return [line[:1].upper() + line[1:] for line in lines]


def written(file, lines):
    """A file of these lines."""
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file
