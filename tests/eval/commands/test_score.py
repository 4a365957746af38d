import json
import re
import subprocess
import sys
from dataclasses import asdict

import pytest

from alignment_eval.files import version
from alignment_eval.links.files import ReadOptions, read_gold, read_hypothesis
from alignment_eval.reading import content_hash
from alignment_eval.scoring.aer import count
from alignment_eval.scoring.significance import Resampling, compare_all
from tests.facts import says

GOLD = "1-1 2-2 3p3\n1-2 2-1\n"
HYPOTHESIS = "0-0 2-2 3-3\n0-1\n"
FILES = {"gold": GOLD, "hyp": HYPOTHESIS}
GOLD_OPTIONS = ("--gold", "gold", "--gold-base", "1")
STATED = (*GOLD_OPTIONS, "hyp")


def test_json(files, align_eval):
    done = align_eval("score", "--format", "json", *STATED)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    # |A| = 4, |S| = 4, |A∩S| = 2, |A∩P| = 3
    assert result == {
        "hypothesis": "hyp",
        "aer": 1 - 5 / 8,
        "precision": 3 / 4,
        "recall": 2 / 4,
        "hypothesis_links": 4,
        "hypothesis_links_sure": 2,
        "hypothesis_links_possible": 3,
        "sure_links": 4,
        "possible_links": 1,
        "sentences": 2,
        "signature": (
            f"metric:aer|gold:{content_hash([GOLD.encode()])}|gold_format:talp|gold_base:1|gold_swap:no"
            f"|hyp:{content_hash([HYPOTHESIS.encode()])}|hyp_format:pharaoh|hyp_base:0|hyp_swap:no|hyp_possible:no"
            f"|sentences:2|version:align-eval-{version()}"
        ),
    }


def test_standard_input(files, align_eval):
    command = [sys.executable, "-m", "alignment_eval", "score", *GOLD_OPTIONS, "-"]
    done = subprocess.run(command, input=HYPOTHESIS, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == align_eval("score", *STATED).stdout.replace("hyp:", "<stdin>:", 1)


def test_tsv_of_several_hypotheses(files, call):
    files("a\tb\x1b", "\n\n")
    status, out, err = call("score", *STATED, "a\tb\x1b", "--format", "tsv")
    assert status == 0
    header, first, second = (line.split("\t") for line in out.splitlines())
    assert header[:4] == ["hypothesis", "aer_percent", "precision_percent", "recall_percent"]
    assert first == ["hyp", "37.50", "75.00", "50.00", "4", "2", "3", "4", "1", "2"]
    assert second == [r"a\tb\x1b", "100.00", "", "0.00", "0", "0", "0", "4", "1", "2"]  # a name is one cell
    hashes = ",".join(content_hash([text.encode()]) for text in (HYPOTHESIS, "\n\n"))
    assert f"|hyp:{hashes}|hyp_format:pharaoh|" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("format_", "best", "title", "signed"),
    [
        ("text", "{}*", "gold 60", "metric:"),
        ("md", "**{}**", "gold 60", "metric:"),
        ("latex", r"\textbf{{{}}}", "% ", "% "),
    ],
)
def test_several_hypotheses_are_one_table(files, call, format_, best, title, signed):
    files("gold", GOLD * 15)
    files("hyp", HYPOTHESIS * 15)
    files("a_b|c", "0-0\n0-1 1-0\n" * 15)
    status, out, err = call("score", *STATED, "a_b|c", "--format", format_)
    assert (status, err) == (0, "")
    lines = [line for line in out.splitlines() if line]
    assert lines[0].startswith(title)
    assert lines[-1].startswith(signed)
    assert lines[-1].count("metric:aer|gold:") == 1
    row, *_ = (line for line in lines if line.startswith(("a_b|c", r"| a_b\|c", r"a\_b|c")))
    # |A| = 45, |S| = 60, |A∩S| = |A∩P| = 45
    cells = re.split(r"  +| \| | & ", row.removesuffix(r" \\").strip("| "))
    json_ = call("score", *GOLD_OPTIONS, "a_b|c", "--format", "json", "--resamples", 10_000)[1]
    interval = json.loads(json_)["confidence"]["aer"]
    shown = f"[{100 * interval['low']:.2f}, {100 * interval['high']:.2f}]"
    assert cells[1:6] == [best.format("14.29"), shown, best.format("100.00"), best.format("75.00"), "45"]


def test_one_hypothesis_alone_is_not_marked_as_the_best(files, call):
    assert "**" not in call("score", *STATED, "--format", "md")[1]


def test_per_sentence(files, call):
    files("other", "\n0-1 1-0\n")
    status, out, err = call("score", *STATED, "other", "--format", "sentences")
    assert (status, err.count("\n")) == (0, 1)
    header, *rows = (line.split("\t") for line in out.splitlines())
    columns = "hypothesis line hypothesis_links sure_links hypothesis_links_sure hypothesis_links_possible"
    assert header == [*columns.split(), "aer", "precision", "recall"]
    assert rows == [
        ["hyp", "1", "3", "2", "1", "2", repr(2 / 5), repr(2 / 3), "0.5"],
        ["hyp", "2", "1", "2", "1", "1", repr(1 / 3), "1.0", "0.5"],
        ["other", "1", "0", "2", "0", "0", "1.0", "", "0.0"],
        ["other", "2", "2", "2", "2", "2", "0.0", "1.0", "1.0"],
    ]


def test_confidence(files, call):
    files("gold", "1-1 2-2 3p3\n1-2 2-1\n" * 15)
    files("hyp", "0-0 2-2 3-3\n0-1\n" * 15)
    asked = (*STATED, "--resamples", "200")
    status, out, err = call("score", "--format", "json", *asked)
    assert (status, err) == (0, "")
    result = json.loads(out)
    plain = json.loads(call("score", "--format", "json", *STATED)[1])
    intervals = result.pop("confidence")
    assert list(intervals) == ["aer", "precision", "recall"]
    assert 0 <= intervals["aer"]["low"] < result["aer"] < intervals["aer"]["high"] <= 1
    assert intervals["recall"] == {"low": 0.5, "high": 0.5}  # that of every sentence
    fields = "|level:0.95|interval:bootstrap-percentile|resamples:200|seed:0"
    assert result.pop("signature").replace(fields, "") == plain.pop("signature")
    assert result == plain
    shown = {name: f"[{100 * pair['low']:.2f}, {100 * pair['high']:.2f}]" for name, pair in intervals.items()}
    assert call("score", *asked)[1].splitlines()[0] == (
        f"hyp: AER 37.50 % {shown['aer']}, precision 75.00 % {shown['precision']}, recall 50.00 % {shown['recall']}"
    )


def test_every_pair_of_systems_is_tested(files, call):
    files("gold", GOLD * 15)
    files("first", "0-0 2-2 3-3\n0-1 1-0\n0-1\n1-0 1-1\n0-0\n0-1\n" * 5)
    files("second", "0-0 1-1 2-2\n0-1 1-0\n0-0 1-1\n0-1 1-0\n0-0 1-1\n0-1 0-0\n" * 5)
    names, options = ("first", "second", "first"), (*GOLD_OPTIONS, "--resamples", "500")
    results = [*map(json.loads, call("score", "--format", "json", *options, *names)[1].splitlines())]
    gold = read_gold("gold", ReadOptions(base="1"))
    counts = [count(read_hypothesis(name).each_links(), gold) for name in names]
    pairs = compare_all(counts, Resampling(500))
    for second, result in enumerate(results):
        expected = [(names[first], pairs[first, second]) for first in range(second)]
        assert result.get("differences", []) == [
            {"baseline": name, **{metric: asdict(each) for metric, each in pair.items()}} for name, pair in expected
        ]
        assert "|tests:paired-bootstrap,approximate-randomisation|resamples:500|" in result["signature"]
    table = call("score", "--format", "latex", *options, *names)[1].splitlines()
    rows = [line.removesuffix(r" \\").split(" & ") for line in table]
    cells = [row[6:] for row in rows if len(row) > 1]
    delta, p = pairs[0, 1]["aer"].delta, pairs[0, 1]["aer"].p_randomisation
    of_pair = f"{100 * delta:+.2f} ({p:.3g})".replace("-", "$-$", 1)
    assert cells == [["$-$ 1 (p)", "$-$ 2 (p)"], ["", ""], [of_pair, ""], ["+0.00 (1)", of_pair.replace("$-$", "+")]]
    last = call("score", *options, "first", "second")[1].splitlines()[-2].split()
    recall = pairs[0, 1]["recall"]
    gain, low, high = (f"{100 * value:+.2f}" for value in (recall.delta, recall.interval.low, recall.interval.high))
    p_values = f"{recall.p_bootstrap:.3g}", f"{recall.p_randomisation:.3g}"
    assert last == ["recall", "%", "50.00", "91.67", gain, f"[{low},", f"{high}]", *p_values]


EXCHANGE = "exchange the hypothesis with align-eval convert --from-swap --to pharaoh"
#: Ten sentences, no two alike, that count from 1.
LINES = [" ".join(f"{(5 * k + n) % 7 + 1}-{(3 * k * k + n * n) % 11 + 1}" for k in range(6)) for n in range(12)]


def test_diagnosis(files, call):
    """Of a hypothesis whose links are the gold's, target-source."""
    files("gold", "".join(f"{line}\n" for line in LINES))
    turned = (" ".join("-".join(reversed(link.split("-"))) for link in line.split()) for line in LINES)
    files("hyp", "".join(f"{line}\n" for line in turned))
    swapped = (*STATED, "--hyp-base", "1")
    status, out, _ = call("score", *swapped, "--diagnose", "--format", "json")
    result = json.loads(out)
    plain = json.loads(call("score", *swapped, "--format", "json")[1])
    diagnosis = result.pop("diagnosis")
    assert (status, result) == (0, plain)
    assert diagnosis["explanation"] == [f"{EXCHANGE} or give --gold-swap"]
    assert diagnosis["readings"][0] == {"changes": [], "aer": plain["aer"]}
    assert {"changes": diagnosis["explanation"], "aer": 0.0} in diagnosis["readings"]
    assert f"\n  diagnosis: {EXCHANGE} or give --gold-swap\n" in call("score", *swapped, "--diagnose")[1]
    assert "no other reading of the files explains this AER" in call("score", *swapped, "--gold-swap", "--diagnose")[1]


@pytest.mark.parametrize("number", [1, 5, 9])
def test_the_diagnosis_of_few_sentences_is_likely(files, call, number):
    files("gold", "".join(f"{line}\n" for line in LINES[:number]))
    asked = ("score", *GOLD_OPTIONS, "gold", "--hyp-base", 1, "--diagnose")
    assert says(call(*asked, "--gold-swap")[1], f"only {number} sentence … likely {EXCHANGE} or omit --gold-swap")
    assert says(call(*asked)[1], f"only {number} sentence … too few")


def test_where_a_line_is_missing(files, call):
    files("gold", "".join(f"{line}\n" for line in LINES * 2))
    files("hyp", "".join(f"{line}\n" for line in LINES[:3] + LINES[4:] + LINES))
    status, out, err = call("score", *STATED, "--hyp-base", "1")
    assert (status, out) == (1, "")
    assert says(err, "hyp has 23 sentences, but gold has 24 … if you insert 1 line into the hypothesis at about line 4")


def test_the_diagnosis_comes_before_the_refusal(files, call):
    sizes = [2 + k * k % 7 for k in range(40)]
    lines = [" ".join(f"{i}-{i}" for i in range(size)) for size in sizes]
    files("gold", "".join(f"{line}\n" for line in lines))
    files("hyp", "".join(f"{line}\n" for line in [*lines[1:], lines[0]]))  # a line is lost at the beginning
    files("text", "".join(f"{' w' * size}\n" for size in sizes))
    options = ("--gold", "gold", "--gold-base", "0", "hyp", "--source", "text", "--target", "text")
    status, _, err = call("score", *options, "--diagnose")
    assert status == 1
    assert says(err, "is outside its sentence pair … hyp: AER is … % if you insert 1 line into the hypothesis")
    assert "if you insert" not in call("score", *options)[2]


def test_systems_that_are_named(files, call):
    status, out, _ = call("score", *GOLD_OPTIONS, "ours=hyp", "theirs=hyp")
    assert (status, [line.split()[0] for line in out.splitlines()[2:4]]) == (0, ["ours", "theirs"])
    assert call("score", *GOLD_OPTIONS, "ours=hyp")[1].startswith("ours: AER")


@pytest.mark.parametrize(
    ("line", "fact"),
    [
        ("der Dach@@ first glänzt", "source: … 2 of 2 … @@"),
        ("das ist Omas &apos; s", "source: … 2 of 2 … &apos;"),
        ("eine E-Mail an a@b , 5 % & Co .", None),
    ],
)
def test_texts_that_are_not_in_words_are_named(files, call, line, fact):
    files("source", f"{line}\n" * 2)
    files("target", "the ridge shines bright\n" * 2)
    status, _, err = call("score", *STATED, "--source", "source", "--target", "target")
    assert status == 0
    assert says(err, fact) if fact else err == ""
