import json
from dataclasses import asdict

from alignment_eval.links.files import ReadOptions, read_gold, read_hypothesis
from alignment_eval.scoring.aer import count
from alignment_eval.scoring.significance import Resampling, compare

GOLD = "1-1 2-2 3p3\n1-2 2-1\n" * 15
FIRST = "0-0 2-2 3-3\n0-1 1-0\n0-1\n1-0 1-1\n0-0\n0-1\n" * 5
SECOND = "0-0 1-1 2-2\n0-1 1-0\n0-0 1-1\n0-1 1-0\n0-0 1-1\n0-1 0-0\n" * 5
STATED = ("--gold", "gold", "--gold-base", "1", "--resamples", "500")
FILES = {"gold": GOLD, "first": FIRST, "second": SECOND}


def test_json(files, align_eval):
    done = align_eval("compare", "--format", "json", *STATED, "first", "second", "first")
    assert (done.returncode, done.stderr) == (0, "")
    gold = read_gold("gold", ReadOptions(base="1"))
    counts = [count(read_hypothesis(name).each_links(), gold) for name in ("first", "second", "first")]
    expected = [compare(counts[k], counts[k + 1 :], Resampling(500)) for k in (0, 1)]
    pairs = [("first", "second"), ("first", "first"), ("second", "first")]
    for line, names, figures in zip(done.stdout.splitlines(), pairs, [*expected[0], *expected[1]], strict=True):
        found = json.loads(line)
        assert (found["baseline"], found["system"], found["sentences"]) == (*names, 30)
        assert {name: found[name] for name in figures} == {name: asdict(each) for name, each in figures.items()}


def test_several_systems_are_a_matrix(files, call):
    files("third", GOLD.replace("1-1 2-2 3p3", "0-0 1-1").replace("1-2 2-1", "0-1"))
    status, out, err = call("compare", *STATED, "first", "second", "third", "--format", "latex")
    assert (status, err) == (0, "")
    rows = [line.removesuffix(r" \\").split(" & ") for line in out.splitlines() if line.endswith(r"\\")]
    assert rows[0] == ["", "system", r"AER \%", r"precision \%", r"recall \%", "$-$ 1 (p)", "$-$ 2 (p)"]
    # |S| = 60; first: |A| = 50, |A∩S| = 30, |A∩P| = 35; second: 65, 55, 60
    assert [row[1:3] for row in rows[1:]] == [["first", "40.91"], ["second", r"\textbf{8.00}"], ["third", "14.29"]]
    pairs = call("compare", *STATED, "first", "second", "third", "--format", "json")[1].splitlines()
    for pair, cell in zip(map(json.loads, pairs), (rows[2][5], rows[3][5], rows[3][6])):
        delta, p = pair["aer"]["delta"], pair["aer"]["p_randomisation"]
        assert cell == f"{100 * delta:+.2f} ({p:.3g})".replace("-", "$-$", 1)
