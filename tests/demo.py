"""The bundled models, and their text: in tokens, in pieces, and raw as a user has it."""

from pathlib import Path

from sacremoses import MosesDetokenizer
from subword_nmt.apply_bpe import BPE

DEMO = Path(__file__).resolve().parents[1] / "data" / "demo"
MODEL = ("--path", DEMO / "checkpoint.pt")
BOTH = (*MODEL, "--reverse-path", DEMO / "checkpoint.en-de.pt")


def lines(language):
    """The 60 sentences of a language, tokenised and in lower case."""
    return (DEMO / f"demo.{language}").read_text(encoding="utf-8").splitlines()


def raw_lines(language):
    """The same, detokenised, with a capital at the beginning."""
    detokenizer = MosesDetokenizer(lang=language)
    detokenized = [detokenizer.detokenize(line.split(), unescape=False) for line in lines(language)]
    return [line[:1].upper() + line[1:] for line in detokenized]


def written(file, lines):
    """A file of these lines."""
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def in_pieces(lines, codes=DEMO / "codes.bpe"):
    """Lines of tokens cut by subword-nmt."""
    with codes.open(encoding="utf-8") as file:
        return list(map(BPE(file).process_line, lines))
