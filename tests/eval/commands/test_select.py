import json
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.extraction.method import MapNames
from alignment_eval.profiles.profile import read_profile
from tests.facts import says

DEV = [("a@@ b c . </s>", "x y@@ z . </s>"), ("a b c d </s>", "x y z v </s>"), ("a b@@ c </s>", "x y </s>")]
GOLD = ["0-1 1-0 2p2", "3-0 1-1 0-3", "1-0 0-1"]
TEST = [("e f g </s>", "t u v </s>"), ("e f@@ g </s>", "t u </s>")]


def run_of(pairs, make_sentence, seed=0):
    made = [make_sentence(seed + k, source=a, target=b) for k, (a, b) in enumerate(pairs)]
    return [replace(s, id=k) for k, s in enumerate(made)]


@pytest.fixture
def files(tmp_path, make_sentence, make_records):
    """Records of a development and a test set of one model, and of the other direction."""
    make_records(tmp_path / "dev", run_of(DEV, make_sentence), signature={"model": "m1", "data": "d1"})
    make_records(tmp_path / "test", run_of(TEST, make_sentence, 9), signature={"model": "m1", "data": "d2"})
    for name, pairs in (("dev", DEV), ("test", TEST)):
        back = run_of([(b, a) for a, b in pairs], make_sentence, 30)
        make_records(tmp_path / f"{name}-back", back, signature={"model": "m3", "data": f"{name}4"})
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in GOLD))
    return tmp_path


def test_choose_on_one_set_and_use_on_another(files, call):
    what = ("select", files / "dev", "--dev-gold", files / "gold", "--gold-base", 0, "-o", files / "choice.json")
    status, out, messages = call(*what)
    assert status == 0, messages
    choice = read_profile(files / "choice.json")
    heading, *_ = out.splitlines()
    # two kinds; every AWI map of layer 0 with every AWO map of layer 1, heads and whole layers, and the upper layers
    assert heading == f"The 10 lowest AERs of {2 * (4 * 4 + 1)} sets of maps in {files / 'dev'}"
    assert f"chosen by gold on 3 pairs, AER {100 * choice.figure:.2f} %, an optimistic figure" in out.splitlines()[-1]
    assert messages.splitlines()[-1] == choice.signature
    assert choice.signature.startswith("records:61f839d80a062146|dev_gold:")
    assert f"|kinds:attn_w,attn_n|profile:gold|profile_text:{choice.text}|profile_gold:{choice.gold}|" in messages
    assert (choice.model, choice.pairs, len(choice.sentences)) == ("m1", 3, 3)

    # what the choice was made on: the figure again, and a warning
    given = ("--profile", files / "choice.json")
    status, _, messages = call("extract", files / "dev", *given, "-o", files / "dev.hyp", "--word-table", 0)
    assert status == 0
    reason, warning, signature = messages.splitlines()
    assert f"; profile: {files / 'choice.json'}" in reason
    assert "3 of these 3 sentence pairs" in warning
    scored = call("score", "--format", "json", "--gold", files / "gold", "--gold-base", 0, files / "dev.hyp")
    assert json.loads(scored[1])["aer"] == choice.figure
    fields = f"|profile:gold|profile_text:{choice.text}|profile_gold:{choice.gold}|version:"
    assert fields in signature

    # another set: no warning, and the options that were chosen
    status, out, messages = call("extract", files / "test", *given)
    assert (status, len(messages.splitlines())) == (0, 2)
    assert fields in messages
    option = choice.streamed.forward
    stated = call(
        *("extract", files / "test", "--kind", option.kind, "--heads", option.heads, "--combine", option.combine),
        *("--setting", option.setting, "--rule", option.rule, "--null", option.null, "--final-punctuation"),
    )
    assert stated[1] == out
    assert out.count("\n") == 2


def test_a_part_of_the_sentences_in_another_order_is_recognised(files, make_sentence, make_records, call):
    """Of the three sentences that the maps were chosen on, two, exchanged."""
    assert call("select", files / "dev", "--dev-gold", files / "gold", "--gold-base", 0, "-o", files / "c")[0] == 0
    one, two, _ = run_of(DEV, make_sentence)
    sentences = [replace(two, id=0), replace(one, id=1)]
    part = make_records(files / "part", sentences, signature={"model": "m1"})
    status, _, messages = call("extract", part, "--profile", files / "c", "--output", files / "h")
    assert status == 0
    assert "2 of these 2 sentence pairs" in messages


GOLD_OPTIONS = ("--dev-gold", "gold", "--gold-base", "0")


@pytest.mark.parametrize(
    ("given", "status", "text"),
    [
        ((), 1, "dev: fewer than 30 different sentence pairs"),
        (("--kinds", "attn_w"), 2, "--kinds without --dev-gold"),
        (("--source", "gold", "--target", "gold"), 2, "--source without --dev-gold"),
        ((*GOLD_OPTIONS, "--reverse", "test-back"), 1, "test-back: records of 2 sentences, but dev of 3"),
    ],
)
def test_refusals(files, monkeypatch, call, given, status, text):
    monkeypatch.chdir(files)
    before = sorted(path.name for path in files.iterdir())
    got, out, messages = call("select", "dev", "-o", "choice.json", *given)
    assert (got, out) == (status, "")
    assert says(messages, text)
    assert sorted(path.name for path in files.iterdir()) == before


RULES = ("two-way=0.2", "two-way=0.4", "kobayashi2020")
PAIRS = 32


@pytest.fixture
def two_ways(tmp_path, make_sentence, make_records):
    """Records of 32 pairs in both directions, whose maps know the gold a little, and that gold."""
    rng = np.random.default_rng(3)
    runs = ([], [])
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
            arrays["layer_attn_n"][1] += 4 * aligned
            arrays["head_attn_w"][0, 0, 1:] += 4 * aligned[:-1]
            run.append(replace(made, arrays=arrays))
    make_records(tmp_path / "de-en", runs[0], signature={"model": "m1"})
    make_records(tmp_path / "en-de", runs[1][::-1], signature={"model": "m2"})
    (tmp_path / "gold").write_text("".join(f"{line}\n" for line in gold))
    return tmp_path


def figure_of(call, folder, *options):
    """AER of what ``extract`` writes."""
    status, _, messages = call("extract", folder / "de-en", *options, "--output", folder / "h", "--overwrite")
    assert status == 0, messages
    scored = call("score", "--format", "json", "--gold", folder / "gold", "--gold-base", 0, folder / "h")[1]
    return float(json.loads(scored)["aer"])


def test_without_gold_the_maps_that_agree(two_ways, call):
    """The profile of records is the one that extract makes of them where there is none."""
    both = ("--reverse", two_ways / "en-de")
    status, out, messages = call("select", two_ways / "de-en", *both, "-o", two_ways / "p")
    assert status == 0, messages
    profile = read_profile(two_ways / "p", "m1")
    assert (profile.chosen_by, profile.reverse_model, profile.pairs) == ("agreement", "m2", PAIRS)
    assert profile.streamed.forward.heads == MapNames("0.0:awi,1")
    assert f"head 0.0 (AWI) × layer 1 (AWO), chosen by agreement on {PAIRS} pairs" in out
    for options in ((), both):
        by_profile = call("extract", two_ways / "de-en", *options, "--profile", two_ways / "p")
        assert call("extract", two_ways / "de-en", *options)[1] == by_profile[1]


def test_extract_reaches_what_was_chosen_for_each_use(two_ways, call):
    gold = ("--dev-gold", two_ways / "gold", "--gold-base", 0)
    both = ("--reverse", two_ways / "en-de")
    among = ("--kinds", "attn_n", "--rules", ",".join(RULES))
    status, _, messages = call("select", two_ways / "de-en", *both, *gold, *among, "-o", two_ways / "p")
    assert status == 0, messages
    profile = read_profile(two_ways / "p", "m1")
    assert (profile.reverse_model, profile.chosen_by, len(profile.sentences)) == ("m2", "gold", PAIRS)
    assert figure_of(call, two_ways, "--profile", two_ways / "p") == profile.figure
    # the rule for both models is the best of those that the product allows
    maps = ("--heads", profile.both.forward.heads, "--reverse-heads", profile.both.reverse.heads)
    named = (*maps, "--combine", "product", "--final-punctuation", *both, "--join", "product", "--rule")
    figures = {rule: figure_of(call, two_ways, *named, rule) for rule in RULES[:2]}
    assert profile.both.forward.rule == min(figures, key=figures.__getitem__)
    assert figure_of(call, two_ways, "--profile", two_ways / "p", *both) == min(figures.values())
    status, _, messages = call("select", two_ways / "de-en", *both, *gold, "--rules", "shift-att")
    assert (status, "--rules shift-att: none reads the product of two models" in messages) == (2, True)
