"""AER in a few lines of plain Python, with sets: the baseline for ``align-eval score``.

``python plain_score.py GOLD HYPOTHESIS``: talp and Pharaoh lines, both 0-based; prints AER, a fraction.
"""

import sys
from pathlib import Path


def main(gold: str, hypothesis: str) -> None:
    size = agreed = 0
    with Path(gold).open() as golds, Path(hypothesis).open() as hypotheses:
        for gold_line, line in zip(golds, hypotheses):
            links = {tuple(map(int, link.split("-"))) for link in line.split()}
            sure = {tuple(map(int, link.split("-"))) for link in gold_line.split() if "-" in link}
            possible = sure | {tuple(map(int, link.split("p"))) for link in gold_line.split() if "p" in link}
            size += len(links) + len(sure)
            agreed += len(links & sure) + len(links & possible)
    print((size - agreed) / size)


if __name__ == "__main__":
    main(*sys.argv[1:])
