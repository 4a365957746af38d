from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from alignment_eval.maps.sentence import SentenceMaps
from alignment_eval.records.store import Records
from alignment_eval.selection.profile import read_profile
from tests.facts import says

Call = Callable[..., tuple[int, str, str]]
Factory = Callable[..., SentenceMaps]
Writer = Callable[..., Path]
Run = Callable[..., Any]

DEV = [("a@@ b c . </s>", "x y@@ z . </s>"), ("a b c d </s>", "x y z v </s>"), ("a b@@ c </s>", "x y </s>")]
GOLD = ["0-1 1-0 2p2", "3-0 1-1 0-3", "1-0 0-1"]
TEST = [("e f g </s>", "t u v </s>"), ("e f@@ g </s>", "t u </s>")]


def run_of(pairs: list[tuple[str, str]], make_sentence: Factory, seed: int = 0) -> list[SentenceMaps]:
    made = [make_sentence(seed + k, source=a, target=b) for k, (a, b) in enumerate(pairs)]
    return [replace(s, id=k) for k, s in enumerate(made)]


@pytest.fixture
def files(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> Path:
    """Records of a development and a test set of one model, the former cut otherwise, and of other directions."""
    make_records(tmp_path / "dev", run_of(DEV, make_sentence), signature={"model": "m1", "data": "d1"})
    make_records(tmp_path / "test", run_of(TEST, make_sentence, 9), signature={"model": "m1", "data": "d2"})
    again = [("ab c . </s>", "x y@@ z . </s>"), DEV[1], ("a bc </s>", "x y </s>")]
    make_records(tmp_path / "again", run_of(again, make_sentence), signature={"model": "m2", "data": "d3"})
    for name, pairs in (("dev", DEV), ("test", TEST)):
        back = run_of([(b, a) for a, b in pairs], make_sentence, 30)
        make_records(tmp_path / f"{name}-back", back, signature={"model": "m3", "data": f"{name}4"})
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in GOLD))
    return tmp_path


def test_choose_on_one_set_and_use_on_another(files: Path, align_eval: Run) -> None:
    done = align_eval(
        *("select", files / "dev", "--dev-gold", files / "gold", "--gold-base", 0, "-o", files / "choice.json")
    )
    assert done.returncode == 0, done.stderr
    choice = read_profile(files / "choice.json")
    first, *_ = done.stdout.splitlines()
    assert first == "The 10 single maps of the lowest AER on these 3 sentences"
    *_, summary, note = done.stdout.splitlines()
    assert f": AER {100 * choice.figure:.2f} %," in summary
    assert f"heads {choice.alone.forward.map_names}" in summary
    assert note == "That AER is an optimistic figure: report one on other sentences."
    assert done.stderr.splitlines()[-1] == choice.signature
    assert choice.signature.startswith("records:61f839d80a062146|dev_gold:")
    assert (
        "|dev_gold_base:0|dev_gold_swap:no|combine:mean,product|floor:1e-06|max_heads:8|kinds:attn_w,attn_n|settings:"
        "awo,awi|rules:kobayashi2020,shift-att|final_punctuation:no|levels:head,layer|version:"
    ) in choice.signature
    assert (choice.model, choice.pairs, len(choice.sentences)) == ("m1", 3, 3)

    # what the choice was made on: the figure again, and a warning
    done = align_eval("extract", files / "dev", "--choice", files / "choice.json", "--output", files / "dev.hyp")
    assert done.returncode == 0
    reason, warning, signature = done.stderr.splitlines()
    assert f"chosen by gold on 3 pairs (AER {100 * choice.figure:.1f} %) ({files / 'choice.json'})" in reason
    assert "3 of these 3 sentence pairs" in warning
    scored = align_eval(
        "score", "--format", "json", "--gold", files / "gold", "--gold-base", 0, "--hyp", files / "dev.hyp"
    )
    result = json.loads(scored.stdout)
    assert result["aer"] == choice.figure
    fields = f"|profile:gold|profile_text:{choice.text}|profile_gold:{choice.gold}|version:"
    assert fields in signature

    # another set: no warning, and the options that were chosen
    done = align_eval("extract", files / "test", "--choice", files / "choice.json")
    assert done.returncode == 0
    assert len(done.stderr.splitlines()) == 2
    assert fields in done.stderr
    option = choice.alone.forward
    stated = align_eval(
        *("extract", files / "test", "--kind", option.kind, "--heads", option.map_names, "--combine", option.combine),
        *("--setting", option.setting, "--rule", option.rule, "--null", option.null),
    )
    assert stated.stdout == done.stdout
    assert done.stdout.count("\n") == 2

    # records of another model
    done = align_eval("extract", files / "again", "--choice", files / "choice.json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "choice.json: is the profile of model m1, but the model at hand is m2" in done.stderr


def test_a_part_of_the_sentences_in_another_order_is_recognised(
    files: Path, make_sentence: Factory, make_records: Writer, call: Call
) -> None:
    """Of the three sentences that the maps were chosen on, two, exchanged."""
    assert call("select", files / "dev", "--dev-gold", files / "gold", "--gold-base", 0, "-o", files / "c")[0] == 0
    one, two, _ = run_of(DEV, make_sentence)
    sentences = [replace(two, id=0), replace(one, id=1)]
    part = make_records(files / "part", sentences, signature={"model": "m1"})
    status, _, messages = call("extract", part, "--choice", files / "c", "--output", files / "h")
    assert status == 0
    assert "2 of these 2 sentence pairs" in messages


def test_agreement(files: Path, call: Call) -> None:
    status, out, _ = call("select", files / "dev", "--reverse", files / "dev-back", "--output", files / "choice.json")
    assert status == 0
    choice = read_profile(files / "choice.json")
    assert (choice.chosen_by, choice.gold) == ("agreement", None)
    assert choice.both is not None
    reverse_heads = choice.both.reverse.map_names
    assert out.endswith(f"the best of {2 * 2 * 3 * 8 * 8} candidates\n")  # kinds, settings, (rule, null), maps of both
    assert f", reverse heads {reverse_heads}, " in out.splitlines()[-1]
    assert f": Dice {100 * choice.figure:.2f} %, the best of" in out
    assert "optimistic" not in out
    # on the same sentences, which no gold was needed for: no warning; the other direction has its own maps
    status, _, messages = call(
        *("extract", files / "dev", "--choice", files / "choice.json", "--reverse", files / "dev-back"),
        *("--join", "mutual", "--output", files / "mutual"),
    )
    assert status == 0
    assert len(messages.splitlines()) == 2
    assert "|reverse:ed72f693180059f7|" in messages
    assert f"|join:mutual|reverse_heads:{reverse_heads}|profile:agreement|" in messages
    one = call("extract", files / "dev", "--choice", files / "choice.json")[1].splitlines()
    option = choice.alone.forward
    other = call(
        *("extract", files / "dev-back", "--kind", option.kind, "--heads", reverse_heads),
        *("--setting", option.setting, "--rule", option.rule, "--null", option.null),
    )[1].splitlines()
    both = dice = 0
    for a, b, c in zip(one, other, (files / "mutual").read_text().splitlines()):
        exchanged = {"-".join(reversed(link.split("-"))) for link in b.split()}
        assert set(c.split()) == set(a.split()) & exchanged
        both += 2 * len(c.split())
        dice += len(a.split()) + len(b.split())
    assert both / dice == pytest.approx(choice.figure, rel=1e-15)


def test_what_to_choose_from(files: Path, call: Call) -> None:
    status, out, _ = call(
        *("select", files / "dev", "--dev-gold", files / "gold", "--gold-base", 0, "--kinds", "attn_n"),
        *("--settings", "awi", "--rules", "threshold=0.2,threshold=.20,top-k=1", "--levels", "layer"),
        *("--combine", "product", "--max-heads", 1, "--final-punctuation", "-o", files / "c"),
    )
    assert status == 0
    assert out.splitlines()[-2].endswith("the best of 8 candidates")  # 2 rules, 2 nulls, 2 layers
    choice = read_profile(files / "c")
    assert choice.alone.forward.final_punctuation
    assert "|combine:product|floor:1e-06|max_heads:1|kinds:attn_n|settings:awi|rules:threshold=0.2,top-k=1|" in (
        choice.signature
    )


def test_mixed_settings(files: Path, call: Call) -> None:
    """The first of the settings names the rest; extract reads what was chosen."""
    what = ("select", files / "dev", "--dev-gold", files / "gold", "--gold-base", 0, "--kinds", "attn_n", "--rules")
    status, out, _ = call(*what, "kobayashi2020", "--mix-settings", "--max-heads", 1, "-o", files / "c")
    assert status == 0
    # 2 nulls, 2 settings, 2 layers of 3 heads and one
    assert out.splitlines()[-2].endswith("the best of 32 candidates")
    assert "|max_heads:1|kinds:attn_n|settings:awo|rules:kobayashi2020|" in read_profile(files / "c").signature
    assert "|levels:head,layer|mix_settings:yes|" in read_profile(files / "c").signature
    status, _, _ = call(*what, "threshold=0.1", "--mix-settings", "-o", files / "mixed")
    choice = read_profile(files / "mixed")
    assert (status, choice.alone.forward.setting) == (0, "awo")
    assert ":awi" in choice.alone.forward.map_names
    assert call("extract", files / "dev", "--choice", files / "mixed", "--output", files / "h")[0] == 0
    status, out, _ = call("score", "--format", "json", "--gold", files / "gold", "--gold-base", 0, "--hyp", files / "h")
    assert json.loads(out)["aer"] == choice.figure
    status, _, error = call("select", files / "dev", "--reverse", files / "dev-back", "--mix-settings")
    assert status == 2
    assert "--mix-settings in a choice by agreement" in error


GOLD_OPTIONS = ("--dev-gold", "gold", "--gold-base", "0")


@pytest.mark.parametrize(
    ("given", "status", "text"),
    [
        ((), 2, "nothing to choose by: expected --dev-gold FILE, --reverse RECORDS, or both"),
        ((*GOLD_OPTIONS, "--lexicon", "-1"), 2, "--lexicon -1: expected a number of passes"),
        ((*GOLD_OPTIONS, "--lexicon", "2"), 1, "a lexicon of 3 sentence pairs: a text of fewer than 30 pairs"),
        (("--reverse", "dev-back", "--lexicon", "2"), 2, "--lexicon without --dev-gold"),
        (("--gold", "gold"), 2, "align-eval"),
        ((*GOLD_OPTIONS, "--rules", "best"), 2, "unknown rule 'best' … one of kobayashi2020, shift-att"),
        ((*GOLD_OPTIONS, "--max-heads", "0"), 2, "at most 0 maps: expected 1 or more"),
        ((*GOLD_OPTIONS, "-o", "-"), 2, "--output -: the standard output has the report; expected the name of a file"),
        (
            (*GOLD_OPTIONS, "-o", "gold"),
            1,
            "gold: already exists; choose another path or pass --overwrite",
        ),
        (
            ("--reverse", "dev-back", "--source", "gold", "--target", "gold"),
            2,
            "--source and --target without --dev-gold",
        ),
        (
            ("--reverse", "test-back"),
            1,
            "test-back: records of 2 sentences, but dev of 3: expected the same sentence pairs, source and target exch",
        ),
        (("--reverse", "dev"), 1, "source and target exchanged"),
        (("--reverse", "nothing"), 1, "nothing: no such directory"),
        (("--dev-gold", "empty", "--gold-base", "0"), 1, "the file is empty"),
    ],
)
def test_refusals(
    files: Path,
    monkeypatch: pytest.MonkeyPatch,
    call: Call,
    given: tuple[str, ...],
    status: int,
    text: str,
) -> None:
    monkeypatch.chdir(files)
    (files / "empty").write_text("")
    before = sorted(path.name for path in files.iterdir())
    got, out, messages = call("select", "dev", "-o", "choice.json", *given)
    assert (got, out) == (status, "")
    assert says(messages, text)
    assert sorted(path.name for path in files.iterdir()) == before


def test_records_of_translations_are_refused(
    tmp_path: Path, make_sentence: Factory, make_records: Writer, call: Call
) -> None:
    signature = {"generation": {"score_reference": False}}
    directory = make_records(tmp_path / "run", [make_sentence(0)], signature=signature)
    (tmp_path / "gold").write_text("0-0\n")
    status, _, messages = call("select", directory, "--dev-gold", tmp_path / "gold", "--gold-base", 0)
    assert status == 1
    assert "maps of the model's own translations" in messages


def test_overwrite(files: Path, call: Call) -> None:
    (files / "c").write_text("old")
    arguments = ("select", files / "dev", "--dev-gold", files / "gold", "--gold-base", 0, "-o", files / "c")
    assert call(*arguments)[0] == 1
    assert (files / "c").read_text() == "old"
    assert call(*arguments, "--overwrite")[0] == 0
    assert read_profile(files / "c").figure


def test_choice_for_another_model(files: Path, make_sentence: Factory, make_records: Writer, call: Call) -> None:
    choose = ("select", files / "dev", "--dev-gold", files / "gold", "--gold-base", 0, "-o", files / "c")
    assert call(*choose)[0] == 0
    content = json.loads((files / "c").read_text())
    content["alone"]["forward"]["heads"] = "5.2,0.1"
    content["streamed"] = content["alone"]  # of two sentences
    (files / "c").write_text(json.dumps(content))
    status, out, messages = call("extract", files / "test", "--choice", files / "c")
    assert (status, out) == (1, "")
    assert (
        f"c: reads map 5.2 (LAYER.HEAD, or LAYER for a whole one), but {files / 'test'} holds layers 0, 1 of 3 hea"
        in messages
    )
    content["alone"]["forward"]["heads"] = "0.1"
    content["alone"]["forward"]["kind"] = "alti"
    content["streamed"] = content["alone"]  # of two sentences
    (files / "c").write_text(json.dumps(content))
    status, out, messages = call("extract", files / "test", "--choice", files / "c")
    assert (status, out) == (1, "")
    assert says(messages, "map kind 'alti' … attn_w … --norm-record-kinds")


def test_skipped_sentences_count_as_empty(
    files: Path, make_sentence: Factory, make_records: Writer, call: Call
) -> None:
    sentences = [*run_of(DEV, make_sentence)[:2], make_sentence(2, status="too long")]
    directory = make_records(files / "some", sentences)
    status, _, messages = call("select", directory, "--dev-gold", files / "gold", "--gold-base", 0)
    assert status == 0
    assert "1 of 3 sentences cannot be aligned, each counts as an empty hypothesis (1 too long)" in messages
    assert np.isfinite(sentences[0].arrays["head_attn_w"]).all()


RULES = ("two-way=0.2", "two-way=0.4", "kobayashi2020")
PAIRS = 32


@pytest.fixture
def two_ways(tmp_path: Path, make_sentence: Factory, make_records: Writer) -> Path:
    """Records of 32 pairs in both directions, whose maps know the gold a little, and that gold."""
    rng = np.random.default_rng(3)
    runs: tuple[list[SentenceMaps], list[SentenceMaps]] = ([], [])
    gold = []
    for id_ in range(PAIRS):
        order = rng.permutation(5)
        words = rng.permutation(60)[:5]
        source, target = " ".join(f"s{w}" for w in words), " ".join(f"t{words[i]}" for i in order)
        gold.append(" ".join(f"{i}-{j}" for j, i in enumerate(order if id_ % 4 else range(5))))
        for k, (run, text) in enumerate(zip(runs, ((source, target), (target, source)))):
            made = replace(make_sentence(100 * k + id_, f"{text[0]} </s>", f"{text[1]} </s>"), id=id_)
            arrays = {name: array.copy() for name, array in made.arrays.items()}
            aligned = np.zeros((6, 6))
            aligned[np.arange(5), order] = 1
            if k:
                aligned[:5, :5] = aligned[:5, :5].T
            arrays["head_attn_w"][1, :2] += 0.1 * aligned
            arrays["layer_attn_n"][1] += 0.9 * aligned
            arrays["head_attn_w"][0, 0, 1:] += 0.1 * aligned[:-1]
            run.append(replace(made, arrays=arrays))
    make_records(tmp_path / "de-en", runs[0], signature={"model": "m1"})
    make_records(tmp_path / "en-de", runs[1][::-1], signature={"model": "m2"})
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in gold))
    return tmp_path


def figure_of(call: Call, folder: Path, *options: object) -> float:
    """AER of what ``extract`` writes."""
    status, _, messages = call("extract", folder / "de-en", *options, "--output", folder / "h", "--overwrite")
    assert status == 0, messages
    scored = call("score", "--format", "json", "--gold", folder / "gold", "--gold-base", 0, "--hyp", folder / "h")[1]
    return float(json.loads(scored)["aer"])


def test_extract_reaches_what_was_chosen_for_each_use(two_ways: Path, call: Call) -> None:
    status, out, messages = call(
        *("select", two_ways / "de-en", "--reverse", two_ways / "en-de", "--dev-gold", two_ways / "gold"),
        *("--gold-base", 0, "--kinds", "attn_n", "--rules", ",".join(RULES), "--mix-settings", "--max-heads", 3),
        *("--lexicon", 2, "-o", two_ways / "p"),
    )
    assert status == 0, messages
    profile = read_profile(two_ways / "p", "m1")
    assert (profile.reverse_model, profile.chosen_by, len(profile.sentences)) == ("m2", "gold", PAIRS)
    assert profile.alone.lexicon_passes == 2
    assert profile.both is not None
    assert profile.both.both is not None
    printed = [float(line.split(": AER ")[1].split(" %")[0]) for line in out.splitlines() if line.startswith("Choice")]
    given = ("--profile", two_ways / "p")
    uses = ((*given, "--lexicon", 0), given, (*given, "--reverse", two_ways / "en-de"))
    reached = [figure_of(call, two_ways, *options) for options in uses]
    assert printed == [round(100 * aer, 2) for aer in reached]
    assert reached[2] == profile.figure
    assert reached[0] > reached[1] >= reached[2] > 0
    assert "|lexicon:2|finalists:3|reverse:" in messages
    # what is said is of the maps that are read, and the figure only where it holds
    for method, options in zip((profile.streamed, profile.alone, profile.both), uses):
        messages = call("extract", two_ways / "de-en", *options)[2].splitlines()[0]
        assert f"maps {method.forward.map_names}, chosen by gold on 32 pairs" in messages
        assert (f"(AER {100 * profile.figure:.1f} %) (" in messages) == (method is profile.both)
    assert f"; maps {profile.both.reverse.map_names}, chosen by gold" in messages


def test_the_choice_is_the_best_of_all_that_extract_can_do(two_ways: Path, call: Call) -> None:
    """A slow and obvious search: every pair of single maps, rule, join and lexicon as options of ``extract``."""
    one_map = (
        "--kinds",
        "attn_n",
        "--settings",
        "awo",
        "--max-heads",
        1,
        "--levels",
        "layer",
        "--rules",
        ",".join(RULES[:2]),
    )
    gold = ("--dev-gold", two_ways / "gold", "--gold-base", 0)
    select = ("select", two_ways / "de-en", "--reverse", two_ways / "en-de", *gold, *one_map, "--lexicon", 1)
    assert call(*select, "-o", two_ways / "p")[0] == 0
    found = read_profile(two_ways / "p")
    figures = []
    for rule, join, lexicon, mine, its in itertools.product(
        RULES[:2], ("mutual", "average", "product"), (0, 1), (0, 1), (0, 1)
    ):
        if not (join == "mutual" and lexicon):
            maps = ("--kind", "attn_n", "--heads", mine, "--setting", "awo", "--rule", rule, "--lexicon", lexicon)
            both = ("--reverse", two_ways / "en-de", "--reverse-heads", its, "--join", join)
            figures.append(figure_of(call, two_ways, *maps, *both))
    assert found.figure == min(figures)
    alone = []
    for rule, lexicon, layer in itertools.product(RULES[:2], (0, 1), (0, 1)):
        maps = ("--kind", "attn_n", "--layer", layer, "--setting", "awo", "--rule", rule, "--lexicon", lexicon)
        alone.append(figure_of(call, two_ways, *maps))
    assert figure_of(call, two_ways, "--profile", two_ways / "p") == min(alone)


def test_skipped_in_one_direction(two_ways: Path, make_sentence: Factory, make_records: Writer, call: Call) -> None:
    """A sentence that one of the models did not align counts as an empty hypothesis, here as in extract."""
    for name, id_ in (("de-en", 3), ("en-de", 5)):
        kept = [s if s.id != id_ else make_sentence(id_, status="too long") for s in Records(two_ways / name).best()]
        info = Records(two_ways / name).info
        shutil.rmtree(two_ways / name)
        make_records(two_ways / name, kept, signature=dict(info.signature))
    status, _, messages = call(
        *("select", two_ways / "de-en", "--reverse", two_ways / "en-de", "--dev-gold", two_ways / "gold"),
        *("--gold-base", 0, "--kinds", "attn_n", "--rules", "two-way=0.3", "--max-heads", 1, "-o", two_ways / "p"),
    )
    assert status == 0, messages
    profile = read_profile(two_ways / "p")
    assert figure_of(call, two_ways, "--profile", two_ways / "p", "--reverse", two_ways / "en-de") == profile.figure
