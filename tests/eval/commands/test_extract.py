"""What ``extract`` reads of records: the maps of a profile, in one direction or in two."""

import re
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.align_pairs import align_pairs
from alignment_eval.commands.extract import directed_pairs
from alignment_eval.errors import InputError
from alignment_eval.extraction.extract import extract, read_word_map
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.maps.words import WITHOUT_TABLE
from alignment_eval.profiles.profile import fit_profile
from alignment_eval.reading import json_hash
from alignment_eval.records import Records
from tests.facts import says

OPTIONS = ("--kind", "attn_n", "--heads", "1", "--setting", "awi", "--rule", "kobayashi2020")


def corpus(make_sentence):
    """Five sentences of layers 1 and 4, not in order; the first and the third were skipped."""
    sentences = [
        make_sentence(3, source="a b c d </s>", target="x@@ y z </s>"),
        make_sentence(2, status="too long"),
        make_sentence(1),
        make_sentence(0, status="too long"),
        make_sentence(4, source="</s>", target="x </s>"),
    ]
    return [replace(s, layers=(1, 4)) for s in sentences]


def lines(sentences, options):
    by_id = {s.id: s for s in sentences}
    links = [extract(by_id[i], options) if by_id[i].ok else () for i in range(len(by_id))]
    return [" ".join(f"{i}-{j}" for i, j in sorted(pairs)) for pairs in links]


@pytest.fixture
def directory(tmp_path, make_sentence, make_records):
    return make_records(tmp_path / "run", corpus(make_sentence), shards=2)


def test_lines_in_corpus_order(directory, tmp_path, make_sentence, align_eval):
    done = align_eval("extract", directory, *OPTIONS)
    expected = lines(corpus(make_sentence), ExtractionOptions("attn_n", "1"))
    assert done.returncode == 0
    assert done.stdout.split("\n") == [*expected, ""]
    assert expected[0] == expected[2] == expected[4] == ""
    assert all(expected[i] for i in (1, 3))
    warning, signature = done.stderr.splitlines()
    assert says(warning, "warning: 2 of 5 sentences … 2 too long")
    assert signature.startswith(
        "records:9e5d467ff709ca60|kind:attn_n|layer:1|head:none|setting:awi|rule:kobayashi2020|null:allow|final_punctuation:no|"
    )
    plain = re.sub(r":[\d.e-]+", "", align_eval("extract", directory, *OPTIONS, "--confidences").stdout)
    assert plain == done.stdout
    again = align_eval("extract", directory, *OPTIONS, "--output", tmp_path / "out.pharaoh")
    assert again.stdout == ""
    assert again.stderr == done.stderr
    assert (tmp_path / "out.pharaoh").read_text(encoding="utf-8") == done.stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.pharaoh", "out.pharaoh.signature.json", "run"]


def test_max_norm_layer(tmp_path, make_sentence, make_records, call):
    sentences = corpus(make_sentence)
    for s in sentences:
        if s.ok:
            s.arrays["transformed_norm"][1] += np.float32(5)  # layer 4
    directory = make_records(tmp_path / "run", sentences)
    status, out, messages = call("extract", directory, *OPTIONS, "--heads", "max-norm")
    assert status == 0
    assert out.split("\n") == [*lines(sentences, ExtractionOptions("attn_n", "4")), ""]
    assert "|layer:4|" in messages
    assert "|layer_by:max-norm|" in messages


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("--heads", "0"), "map 0 … layers 1, 4 … counted from 0"),
        (("--heads", "1.3"), "map 1.3 … of 3 heads"),
        (("--join", "mutual"), "--join without --reverse: expected the records of the other direction too"),
        (("--profile", "x"), "heads together with profile"),
    ],
)
def test_bad_options(directory, tmp_path, call, given, text):
    output = tmp_path / "out.pharaoh"
    status, out, messages = call("extract", directory, *OPTIONS, *given, "--output", output)
    assert (status, out, output.exists()) == (2, "", False)
    assert says(messages, text)


def test_maps_of_translations_are_said_to_be_so(tmp_path, make_sentence, make_records, align_eval):
    signature = {"generation": {"score_reference": False}}
    records = make_records(tmp_path / "run", [make_sentence(0)], signature=signature)
    done = align_eval(
        *("extract", records, "--kind", "attn_n", "--heads", "0", "--setting", "awo", "--rule", "kobayashi2020")
    )
    assert done.returncode == 0
    assert says(done.stderr, "maps of the model's own translations … cannot be scored")


def reverse_corpus(make_sentence):
    """The corpus in the other direction: of a model of other layers, in another order, and with one skipped more."""
    sentences = [
        make_sentence(3, source="x@@ y z </s>", target="a b c d </s>"),
        make_sentence(0, status="too long"),
        make_sentence(1, source="x y@@ z . </s>", target="ab c . </s>"),
        make_sentence(4, status="too short"),
        make_sentence(2, status="too long"),
    ]
    return [replace(s, layers=(1, 5)) for s in sentences]


def test_both_directions(tmp_path, directory, make_sentence, make_records, align_eval):
    back = make_records(tmp_path / "back", reverse_corpus(make_sentence), signature={"model": "other"})
    done = align_eval("extract", directory, *OPTIONS, "--reverse", back, "--join", "average", "--reverse-heads", "5.1")
    assert done.returncode == 0, done.stderr
    options = ExtractionOptions("attn_n", "1")
    reverse = {s.id: s for s in reverse_corpus(make_sentence)}
    expected = [""] * 5
    for s in corpus(make_sentence):
        if s.ok and reverse[s.id].ok:
            back_options = replace(options, heads="5.1")
            maps = read_word_map(s, options), read_word_map(reverse[s.id], back_options)
            method = AlignmentMethod(options, back_options, "average")
            (expected[s.id],) = (pair.to_pharaoh() for pair in align_pairs([maps], method))
    assert done.stdout.split("\n") == [*expected, ""]
    warning, signature = done.stderr.splitlines()
    assert says(warning, "warning: 3 of 5 sentences … 2 too long … 1 too short in the other direction")
    hashes = [json_hash({"model": model}) for model in ("synthetic", "other")]
    assert signature.startswith(f"records:{hashes[0]}|reverse:{hashes[1]}|kind:")
    assert "|final_punctuation:no|join:average|reverse_heads:5.1|version:" in signature


def test_records_of_other_sentences(tmp_path, directory, make_sentence, make_records, call):
    good = reverse_corpus(make_sentence)
    strange = [replace(make_sentence(3, source="q@@ q q </s>", target="q q q q </s>"), layers=(1, 5)), *good[1:]]
    strange[2] = replace(make_sentence(1, source="q q . </s>", target="q q . </s>"), layers=(1, 5))
    few = [s for s in good if s.id < 4]
    for name, sentences, text in (
        ("few", few, "few has 4 sentences, but"),
        ("strange", strange, "words are the same in"),
    ):
        back = make_records(tmp_path / name, sentences)
        given = ("--reverse", back, "--join", "mutual", "--output", tmp_path / "out")
        status, out, messages = call("extract", directory, *OPTIONS, *given)
        assert (status, out, (tmp_path / "out").exists()) == (1, "", False)
        assert says(messages, text)


def test_level_token_links_subwords(directory, make_sentence, align_eval):
    done = align_eval("extract", directory, *OPTIONS, "--null", "mask", "--level", "token")
    options = ExtractionOptions("attn_n", "1", null="mask")
    assert done.stdout.splitlines() == lines([s.by_tokens() for s in corpus(make_sentence)], options)
    assert done.stdout.splitlines() != lines(corpus(make_sentence), options)
    assert "|level:token|" in done.stderr


def test_texts_confirm_words_that_were_not_certain(tmp_path, make_sentence, make_records, align_eval):
    known = corpus(make_sentence)
    hidden = [replace(s, status="unknown source subwords") if s.id in (1, 3) else s for s in known]
    directory, certain = (make_records(tmp_path / name, run) for name, run in (("run", hidden), ("known", known)))
    done = align_eval("extract", directory, *OPTIONS)
    expected = align_eval("extract", certain, *OPTIONS).stdout.splitlines()
    assert "4 of 5 sentences cannot be aligned" in done.stderr
    assert done.stdout.splitlines() == ["", "", "", "", expected[4]]

    def texts(source, target):
        for name, text in (("source", source), ("target", target)):
            (tmp_path / name).write_text(text)
        return ["--source", str(tmp_path / "source"), "--target", str(tmp_path / "target")]

    named = texts("?\nw x .\n?\na b c d\n\n", "?\nx yz .\n?\nxy z\nx\n")
    back = make_records(tmp_path / "back", reverse_corpus(make_sentence))
    for both in ((), ("--reverse", back, "--join", "mutual")):  # the texts of the other direction are exchanged
        done = align_eval("extract", directory, *OPTIONS, *both, *named)
        assert done.returncode == 0, done.stderr
        assert done.stdout == align_eval("extract", certain, *OPTIONS, *both).stdout
    done = align_eval("extract", directory, *OPTIONS, *texts("a\n", "b\n"))
    assert done.returncode == 1
    assert f"{tmp_path}/source has 1 lines, but {directory} has 5 sentences" in done.stderr


PROFILE = replace(
    fit_profile((), (0, 1), "m1"),
    maps=ExtractionOptions("attn_n", "0.0:awi,1", "product", "awo"),
    chosen_by="agreement",
)
NAMED = ("--heads", "0.0:awi,1", "--combine", "product", "--final-punctuation")


@pytest.fixture
def profiled(tmp_path, make_sentence, make_records, monkeypatch):
    """Records without a profile, with one, with a damaged one, and of the other direction."""
    monkeypatch.chdir(tmp_path)
    texts = [("a b c . </s>", "x y z . </s>"), ("a@@ b c . </s>", "x y@@ y z . </s>")]
    made = [make_sentence(k, *text) for k, text in enumerate(texts)]
    signature = {"model": "m1"}
    make_records(tmp_path / "run", made, signature=signature)
    make_records(tmp_path / "with", made, signature=signature, profile=PROFILE.to_json())
    make_records(tmp_path / "damaged", made, signature=signature, profile=PROFILE.to_json()[:-30])
    back = [replace(make_sentence(9 + k, *text[::-1]), id=k) for k, text in enumerate(texts)]
    make_records(tmp_path / "back", back, signature={"model": "m2"})
    other = replace(fit_profile((), (8, 9), "m1"), maps=ExtractionOptions("attn_n", "8"))
    head = replace(PROFILE, maps=ExtractionOptions("attn_n", "0.3"))
    for name, profile in {"p": PROFILE, "other": other, "head": head, "of2": replace(PROFILE, model="m2")}.items():
        (tmp_path / name).write_text(profile.to_json())
    (tmp_path / "both").write_text(PROFILE.with_reverse(replace(PROFILE, model="m2")).to_json())
    return tmp_path


def test_the_profile_is_that_of_the_records_or_the_one_named(profiled, call):
    method = AlignmentMethod(PROFILE.extraction(), sharpening=WITHOUT_TABLE)
    pairs = directed_pairs([Records(profiled / "run")], method, "word", None)
    named = "".join(f"{pair.to_pharaoh()}\n" for pair in align_pairs(pairs, method))
    assert named.count("\n") == 2
    status, out, messages = call("extract", "run", *NAMED, "--rule", "threshold=0.1")
    assert (status, named != out) == (0, True)
    assert "|heads:0.0:awi,1|combine:product|floor:1e-06|setting:" in messages
    for words in (("with",), ("run", "--profile", "p")):
        status, out, messages = call("extract", *words)
        assert (status, out) == (0, named)
        assert "reading head 0.0 (AWI) × layer 1 (AWO); profile: " in messages
        assert "|profile:agreement|profile_text:" in messages
    ways = ("--reverse", "back")
    assert call("extract", "run", *ways, "--profile", "both")[1] != named


@pytest.mark.parametrize(
    ("options", "status", "message"),
    [
        (("run",), 2, "run: no profile; give --heads, or the --profile of norm-align calibrate"),
        (("run", "--profile", "other"), 1, "other: reads map 8 (LAYER.HEAD, or LAYER for a whole layer), but"),
        (("run", "--profile", "head"), 1, "head: reads map 0.3 (LAYER.HEAD, or LAYER for a whole layer), but run has"),
        (("run", "--profile", "of2"), 1, "of2: is the profile of model m2"),
        (("run", "--profile", "p", "--reverse", "back"), 2, "p: is a profile of one direction, but two models"),
        (("damaged",), 1, "damaged: damaged, or not a profile (Input data was truncated"),
    ],
)
def test_no_profile_that_fits(profiled, call, options, status, message):
    """It says why, in one line, and writes nothing."""
    found, out, messages = call("extract", *options, "-o", "out")
    assert (found, out, len(messages.splitlines()), (profiled / "out").exists()) == (status, "", 1, False)
    assert message in messages


def test_errors_of_the_reverse_name_it(tmp_path, make_sentence, make_records):
    runs = [Records(make_records(tmp_path / name, [make_sentence(0)])) for name in ("run", "back")]
    maps = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")
    method = AlignmentMethod(maps, replace(maps, heads="7"), "product")
    with pytest.raises(InputError, match=r"back: .*map 7 "):
        list(directed_pairs(runs, method, "word", None))
