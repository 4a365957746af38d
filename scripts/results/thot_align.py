"""Train a word aligner of sil-thot, and align the last pairs of its text; run by scripts/results/baselines.py.

Usage: thot_align.py hmm|ibm4|fast_align SOURCE TARGET LAST OUT.  Iterations are those of sil-machine.  Pharaoh lines of
the last LAST pairs go to OUT.  It needs sil-machine and sil-thot, in an environment of their own.
"""

import sys
from pathlib import Path

from machine.corpora import TextFileTextCorpus  # type: ignore[import-not-found]
from machine.translation import thot  # type: ignore[import-not-found]

MODELS = {
    "hmm": thot.ThotHmmWordAlignmentModel,
    "ibm4": thot.ThotIbm4WordAlignmentModel,
    "fast_align": thot.ThotFastAlignWordAlignmentModel,
}


def main(name: str, source: str, target: str, last: int, out: str) -> None:
    model = MODELS[name]()
    with model.create_trainer(TextFileTextCorpus(source).align_rows(TextFileTextCorpus(target))) as trainer:
        trainer.train()
        trainer.save()
        texts = [Path(path).read_text(encoding="utf-8").split("\n")[:-1][-last:] for path in (source, target)]
        pairs = [[line.split() for line in pair] for pair in zip(*texts)]
        lines = [" ".join(map(str, matrix.to_aligned_word_pairs())) for matrix in model.align_batch(pairs)]
    Path(out).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])
