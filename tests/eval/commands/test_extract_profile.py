"""What ``extract`` reads of records: the maps of a profile, in one direction or in two."""

from dataclasses import replace

import pytest

from alignment_eval.alignment import align_pairs
from alignment_eval.commands.extract import directed_pairs
from alignment_eval.errors import InputError
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions, MapName
from alignment_eval.profiles.profile import fit_profile, product_of
from alignment_eval.records.store import Records

PROFILE = replace(
    fit_profile((), (0, 1), "m1"), maps=product_of([MapName(0, 0, "awi"), MapName(1)]), chosen_by="agreement"
)
NAMED = ("--heads", "0.0:awi,1", "--combine", "product", "--final-punctuation")


@pytest.fixture
def directory(tmp_path, make_sentence, make_records, monkeypatch):
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
    for name, profile in {"p": PROFILE, "other": other, "of2": replace(PROFILE, model="m2")}.items():
        (tmp_path / name).write_text(profile.to_json())
    (tmp_path / "both").write_text(PROFILE.with_reverse(replace(PROFILE, model="m2")).to_json())
    return tmp_path


def test_the_profile_is_that_of_the_records_or_the_one_named(directory, call):
    method = AlignmentMethod(PROFILE.extraction(), sharpened=True)
    pairs = directed_pairs([Records(directory / "run")], method, "word", None)
    named = "".join(f"{pair.to_pharaoh()}\n" for pair in align_pairs(pairs, method))
    assert named.count("\n") == 2
    assert named != call("extract", "run", *NAMED)[1]
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
        (("run",), 2, "run: no profile says which maps to read: name them by --heads, or make a profile with norm-al"),
        (("with", "--profile", "none"), 2, "with: no profile says which maps to read"),
        (("run", "--profile", "other"), 1, "other: reads map 8 (LAYER.HEAD, or LAYER for a whole one), but"),
        (("run", "--profile", "missing"), 1, "missing: cannot be read as a profile"),
        (("run", "--profile", "of2"), 1, "of2: is the profile of model m2"),
        (("run", "--profile", "p", "--reverse", "back"), 2, "p: is a profile of one direction, but two models"),
        (("damaged",), 1, "damaged: damaged, or not a profile (Input data was truncated"),
    ],
)
def test_no_profile_that_fits(directory, call, options, status, message):
    """It says why, in one line, and writes nothing."""
    found, out, messages = call("extract", *options, "-o", "out")
    assert (found, out, len(messages.splitlines()), (directory / "out").exists()) == (status, "", 1, False)
    assert message in messages


OPTIONS = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")


def test_errors_of_the_reverse_name_it(tmp_path, make_sentence, make_records):
    runs = [Records(make_records(tmp_path / name, [make_sentence(0)])) for name in ("run", "back")]
    method = AlignmentMethod(OPTIONS, replace(OPTIONS, heads="7"), "product")
    with pytest.raises(InputError, match=r"back: .*layer 7"):
        list(directed_pairs(runs, method, "word", None))
