from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.facts import says

SENTENCES = 30
Files = dict[str, list[str]]
Call = Callable[..., tuple[int, str, str]]


def shown(links: set[tuple[int, int]], base: int = 0) -> str:
    return " ".join(f"{i + base}-{j + base}" for i, j in sorted(links))


@pytest.fixture(scope="module")
def texts() -> Files:
    """Texts of words of two pieces, the target in reverse order; gold, and links of which about one in 8 is wrong."""
    rng = random.Random(0)
    content: Files = {"source": [], "target": [], "gold": [], "hyp": [], "pieces": []}
    for n in range(SENTENCES):
        size = rng.randint(5, 9)
        words = [rng.choice("abcde") + rng.choice("xyz") for _ in range(size)]
        links = {(i, size - 1 - i) for i in range(size)}
        wrong = {(i, (j + (i + n) % 8 // 7) % size) for i, j in links}
        content["source"].append(" ".join(words))
        content["target"].append(" ".join(reversed(words)))
        content["gold"].append(shown(links, 1))
        content["hyp"].append(shown(wrong))
        content["pieces"].append(" ".join(f"{2 * i}-{2 * j + 1}" for i, j in sorted(wrong)))
    return content


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: Files) -> Callable[..., None]:
    """Write files in the working folder of the test; those of ``texts`` are there."""
    monkeypatch.chdir(tmp_path)

    def write(**content: list[str]) -> None:
        for name, lines in content.items():
            Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    write(**texts)
    return write


@pytest.fixture
def doctor(files: Callable[..., None], call: Call) -> Callable[..., Any]:
    def run(*arguments: str) -> dict[str, Any]:
        status, out, err = call("doctor", "--gold", "gold", *arguments, "--format", "json")
        assert (status, err) == (0, "")
        result: dict[str, Any] = json.loads(out)
        return result

    return run


GOLD = ("--gold-base", "1")
TEXTS = ("--source", "source", "--target", "target")


def names(result: dict[str, Any]) -> list[str]:
    return [change["name"] for change in result["changes"]]


def cut(mark: str) -> Callable[[str], str]:
    """Each word in two pieces."""
    first = "@@" if mark == "@@" else ""
    return lambda line: " ".join(f"{word[0]}{first} {word[1]}" for word in line.split())


def test_all_is_well(doctor: Callable[..., Any]) -> None:
    result = doctor(*GOLD, "--hyp", "hyp", *TEXTS)
    assert (result["verdict"], result["changes"], result["refused"], result["notes"]) == ("sound", [], [], [])
    assert result["aer_corrected"] is None
    assert result["options"] == {}
    assert result["aer"] < 0.15
    assert result["orientation"]["empty"] == 1
    assert result["orientation"]["diagonal"] > 0.5


def test_base(doctor: Callable[..., Any]) -> None:
    for more, refusals in (((), 1), (("--gold-unused-zero",), 0)):
        result = doctor("--gold-base", "0", *more, "--hyp", "hyp")
        assert (names(result), result["options"]) == (["gold-base"], {"--gold-base": "1"})
        assert len(result["refused"]) == refusals
        assert result["aer_corrected"] == doctor(*GOLD, "--hyp", "hyp")["aer"]


def test_a_base_that_the_user_vouches_for_needs_more_evidence(
    doctor: Callable[..., Any], files: Callable[..., None], texts: Files
) -> None:
    """A hypothesis of one right link a sentence, and some wrong ones."""
    files(hyp=[f"{line.split()[0]} 0-0 0-1 1-0 1-1" for line in texts["hyp"]])
    assert names(doctor("--gold-base", "0", "--hyp", "hyp")) == ["gold-base"]
    assert names(doctor("--gold-base", "0", "--gold-unused-zero", "--hyp", "hyp")) == []


def test_direction(doctor: Callable[..., Any], files: Callable[..., None], texts: Files) -> None:
    """Without the links of the first target words, or a sentence in reverse order would be its own transpose."""
    files(
        gold=[" ".join(f"{i}-{j}" for i, j in pairs(line) if j > 2) for line in texts["gold"]],
        hyp=[" ".join(f"{j}-{i}" for i, j in pairs(line) if j > 1) for line in texts["hyp"]],
    )
    result = doctor(*GOLD, "--hyp", "hyp")
    assert names(result) == ["hyp-swap"]
    assert [[change["name"] for change in changes] for changes in result["equal"]] == [["gold-swap"]]
    assert result["options"] == {"--hyp-swap": True}
    right = doctor(*GOLD, "--hyp", "hyp", "--hyp-swap")
    assert (right["verdict"], right["aer"]) == ("sound", result["aer_corrected"])
    wrong = doctor(*GOLD, "--gold-swap", "--hyp", "hyp", "--hyp-swap")
    assert names(wrong) == ["hyp-swap"]
    assert wrong["options"] == {"--hyp-swap": False}


def pairs(line: str) -> list[tuple[int, int]]:
    return [tuple(map(int, link.split("-"))) for link in line.split()]


def test_texts_exchanged(doctor: Callable[..., Any], files: Callable[..., None]) -> None:
    files(gold=["1-3 2-2"] * 9, hyp=["0-2 1-0"] * 9, source=["a b"] * 9, target=["a b c"] * 9)
    result = doctor(*GOLD, "--hyp", "hyp", "--source", "target", "--target", "source")
    assert len(result["refused"]) == 2
    assert result["notes"] == ["all links fit the texts if these are exchanged; exchange --source and --target"]


def test_a_line_is_missing(doctor: Callable[..., Any], files: Callable[..., None], texts: Files) -> None:
    files(hyp=[*texts["hyp"][:11], *texts["hyp"][12:]])
    result = doctor(*GOLD, "--hyp", "hyp")
    assert names(result) == ["lines"]
    assert result["changes"][0]["fault"].startswith("1 line is missing in the hypothesis at about line 12:")
    assert result["refused"][0].startswith("gold has 30 sentences, hyp has 29: ")
    assert result["options"] == {}


@pytest.mark.parametrize("mark", ["@@", "none"])
def test_links_of_tokens(doctor: Callable[..., Any], files: Callable[..., None], texts: Files, mark: str) -> None:
    files(**{f"hyp_{side}": [cut(mark)(line) for line in texts[side]] for side in ("source", "target")})
    own = ("--hyp-source", "hyp_source", "--hyp-target", "hyp_target")
    result = doctor(*GOLD, "--hyp", "pieces", *TEXTS, *own)
    assert names(result) == ["tokens"]
    assert "outside its sentence pair" in result["refused"][0]
    assert result["aer_corrected"] == doctor(*GOLD, "--hyp", "hyp")["aer"]
    # the same files, and a hypothesis that links words
    assert doctor(*GOLD, "--hyp", "hyp", *TEXTS, *own)["verdict"] == "sound"


@pytest.mark.parametrize("with_texts", [True, False])
def test_links_of_tokens_without_their_texts(doctor: Callable[..., Any], with_texts: bool) -> None:
    """Said, but not explained."""
    result = doctor(*GOLD, "--hyp", "pieces", *(TEXTS if with_texts else ()))
    assert (result["verdict"], result["changes"]) == ("outside", [])
    where = "outside the texts" if with_texts else "beyond all gold links of their sentence"
    assert f"links of the hypothesis lie {where}; if it links subwords" in result["notes"][-1]


def test_texts_that_differ(doctor: Callable[..., Any], files: Callable[..., None], texts: Files) -> None:
    """Case alone changes no link; other words are said to be another text."""
    files(upper=[line.upper() for line in texts["source"]], other=["x y z"] * SENTENCES)
    result = doctor(*GOLD, "--hyp", "hyp", *TEXTS, "--hyp-source", "upper", "--hyp-target", "other")
    assert result["verdict"] == "sound"
    assert [note.split(":")[0] for note in result["notes"]] == ["other is not the gold's text in another tokenisation"]


def test_gold_of_another_tokenisation(doctor: Callable[..., Any], files: Callable[..., None], texts: Files) -> None:
    files(source=[line.replace(" ", "", 1) for line in texts["source"]])
    result = doctor(*GOLD, "--hyp", "hyp", *TEXTS)
    assert any("links of the gold lie outside the texts; give the gold's own text" in n for n in result["notes"])


def test_possible_links(doctor: Callable[..., Any], files: Callable[..., None], texts: Files) -> None:
    junk = " ".join(f"{i}p{i}" for i in range(5))
    files(hyp=[f"{line} {junk} 0p1 1p2 2p3 0p2 1p3" for line in texts["hyp"]])
    result = doctor(*GOLD, "--hyp", "hyp")
    assert names(result) == ["hyp-possible"]
    assert "a possible link (p)" in result["refused"][0]
    assert doctor(*GOLD, "--hyp", "hyp", "--hyp-allow-possible")["refused"] == []


def test_poor(doctor: Callable[..., Any], files: Callable[..., None]) -> None:
    rng = random.Random(1)
    files(hyp=[" ".join(f"{rng.randrange(5)}-{j}" for j in range(5)) for _ in range(SENTENCES)])
    assert doctor(*GOLD, "--hyp", "hyp")["verdict"] == "poor"


@pytest.mark.parametrize(("gold", "hyp"), [("", "0-0"), ("1p1", "0-0"), ("1-1", "")])
def test_empty(doctor: Callable[..., Any], files: Callable[..., None], gold: str, hyp: str) -> None:
    files(gold=[gold] * 3, hyp=[hyp] * 3)
    result = doctor(*GOLD, "--hyp", "hyp")
    assert result["changes"] == []
    empty = [name for name, line in (("gold", gold), ("hypothesis", hyp)) if not line]
    assert [f"the {name} has no links" in result["notes"] for name in empty] == [True] * len(empty)


def test_text(files: Callable[..., None], call: Call) -> None:
    status, out, _ = call("doctor", "--gold", "gold", "--gold-base", "0", "--hyp", "hyp", "hyp")
    assert (status, out.count("fix: ")) == (0, 2)
    verdict, fix, *details = out.split("\n  gold:")[0].split("\n")
    assert says(verdict, "hyp: misread, AER … corrected … the gold counts words from 1, but was read as … from 0")
    assert fix == "fix: give --gold-base 1"
    assert says(" ".join(" ".join(details).split()), "against gold as read (gold from 0 … align-eval score refuses to")
    assert max(len(line) for line in details) <= 100


@pytest.mark.parametrize(
    ("hyp", "verdict", "fix"),
    [
        ("hyp", "hyp: no misreading found, AER … much better than a diagonal", "none found without the texts"),
        ("hyp --source source --target target", "hyp: no misreading found, AER … much better", "none needed"),
        ("poor", "poor: no misreading found, AER … poor", "none in how the files are read"),
        ("pieces", "pieces: no misreading found, AER … cannot be judged", "if it links subwords, … --hyp-source"),
    ],
)
def test_text_of_what_is_not_misread(files: Callable[..., None], call: Call, hyp: str, verdict: str, fix: str) -> None:
    rng = random.Random(1)
    files(poor=[" ".join(f"{rng.randrange(5)}-{j}" for j in range(5)) for _ in range(SENTENCES)])
    status, out, _ = call("doctor", "--gold", "gold", *GOLD, *hyp.split())
    lines = out.splitlines()
    assert status == 0
    assert says(lines[0], verdict)
    assert says(lines[1], f"fix: … {fix}")
    assert out.count("--hyp-source") == fix.count("--hyp-source")
    assert says(" ".join(out.split()), "none of … other readings … the lowest AER … a diagonal gives")


def test_as_read_is_what_score_says(files: Callable[..., None], align_eval: Callable[..., Any]) -> None:
    for options in ((), ("--hyp-swap",), ("--gold-swap", "--hyp-swap")):
        arguments = ("--gold", "gold", "--gold-base", "1", "--hyp", "hyp", "--format", "json", *options)
        score, doctor = (align_eval(command, *arguments) for command in ("score", "doctor"))
        assert (score.returncode, doctor.returncode) == (0, 0)
        assert json.loads(score.stdout)["aer"] == json.loads(doctor.stdout)["aer"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--hyp", "-"), 2, "an input is -: expected files, because each is read more than once"),
        (("--hyp", "hyp", "--source", "source"), 2, "only the source or only the target text is given: expected both"),
        (("--hyp", "hyp", "--hyp-source", "source", "--hyp-target", "target"), 2, "--hyp-source without --source"),
        (("--hyp", "nothing"), 1, "nothing: no such file"),
        (("--hyp", "source"), 1, "source:1: "),
        (("--hyp", "hyp", "--source", "source", "--target", "short"), 1, "source has 30 lines … short has 1"),
    ],
)
def test_errors(files: Callable[..., None], call: Call, arguments: tuple[str, ...], status: int, message: str) -> None:
    files(short=["a"])
    got, out, err = call("doctor", "--gold", "gold", *arguments)
    assert (got, out) == (status, "")
    assert says(err, f"align-eval doctor: {message}")
