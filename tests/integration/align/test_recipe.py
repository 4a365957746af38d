"""How a model's text is made: stated once, kept in its profile, used by everything that loads the model."""

import json
import shutil

import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError
from alignment_eval.reading import file_hash
from fairseq_norm_plugin.align.cli import main
from tests.demo import DEMO, written
from tests.facts import facts

SOURCE = "Wir sind hier, im Haus; und ihr seid z.B. nicht dort."
TARGET = "We are here, in the house; and you aren't there."
STATED = {"tokenizer": "moses", "lowercase": True, "moses_no_escape": "true", "moses_no_dash_splits": "true"}


@pytest.fixture
def model(tmp_path):
    """The bundled model with its dictionaries and codes in a directory of its own, without a profile."""
    for name in ("checkpoint.pt", "codes.bpe", "dict.de.txt", "dict.en.txt"):
        shutil.copy(DEMO / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def profile(model):
    """Its profile, bundled; a function that changes the recipe."""
    path = model / "checkpoint.pt.align.json"
    for name in (path.name, "checkpoint.pt.align.parquet"):
        shutil.copy(DEMO / name, path.with_name(name))

    def change(**recipe):
        content = json.loads(path.read_text())
        content["text_recipe"].update(recipe)
        path.write_text(json.dumps(content))
        return path

    return change


def load(model, **options):
    return fairseq_norm_plugin.load(model / "checkpoint.pt", source_lang="de", target_lang="en", **options)


def test_a_recipe_names_files_of_its_own_directory(model, capsys):
    """Those that lie elsewhere are copied there: a profile opens no file of another directory."""
    words = ["calibrate", "--path", model / "checkpoint.pt", "-s", "de", "-t", "en", "--cpu", "--table-pairs", 0]
    words += ["--source-text", DEMO / "demo.de", "--target-text", DEMO / "demo.en", "--tokenizer", "none"]
    (model / "codes.bpe").unlink()
    assert main(list(map(str, [*words, "--bpe", "subword_nmt", "--bpe-codes", DEMO / "codes.bpe"]))) == 0
    assert str(model / "codes.bpe") in capsys.readouterr().err
    recipe = json.loads((model / "checkpoint.pt.align.json").read_text())["text_recipe"]
    assert (recipe["bpe"], recipe["files"]) == ("subword_nmt", {"bpe_codes": ["codes.bpe"]})
    assert recipe["hashes"] == {"codes.bpe": file_hash(DEMO / "codes.bpe")}
    assert load(model).text.bpe == "subword_nmt"
    (model / "codes.bpe").unlink()
    with pytest.raises(InputError, match=r"codes\.bpe: no such file, but the profile names it"):
        load(model)
    shutil.copy(DEMO / "codes.bpe", model)
    assert load(model).text.bpe == "subword_nmt"
    other = written(model / "other.bpe", (model / "codes.bpe").read_text().splitlines()[:-1])
    with pytest.raises(InputError, match=facts("other.bpe … codes.bpe that the model was calibrated with")):
        load(model, bpe_codes=other)
    shutil.copy(other, model / "codes.bpe")
    with pytest.raises(InputError, match=facts("codes.bpe that the model was calibrated with … calibrate again")):
        load(model)
    assert main(list(map(str, [*words, "--bpe-codes", other, "--overwrite"]))) == 0
    assert load(model).text.files["bpe_codes"] == [str(other)]


def test_a_profile_replaces_what_was_stated(model, profile):
    """The bundled one; test_calibrate.py makes it."""
    stated = load(model, bpe_codes=model / "codes.bpe", **STATED).align(SOURCE, TARGET)
    profile()
    alone = load(model).align(SOURCE, TARGET)
    assert alone == stated
    assert alone.source_words[:5] == ("Wir", "sind", "hier", ",", "im")


def test_a_profile_elsewhere_brings_its_recipe(model, profile, tmp_path):
    """As one of a model whose directory cannot be written to."""
    place = tmp_path / "elsewhere"
    place.mkdir()
    shutil.copy(DEMO / "checkpoint.pt.align.parquet", place)
    named = profile(lowercase=False).rename(place / "mine.json")
    (model / "codes.bpe").rename(place / "codes.bpe")
    loaded = fairseq_norm_plugin.load(model / "checkpoint.pt", source_lang="de", target_lang="en", profile=named)
    assert (loaded.text.tokenizer, loaded.text.lowercase) == ("moses", False)
    assert loaded.align(SOURCE.lower(), TARGET.lower()).ok


def test_what_is_stated_comes_before_the_profile(model, profile):
    profile()
    tokens = "wir sind hier , im haus."
    assert load(model).text.described.startswith("normalisation moses, tokenizer moses, lower case, subwords")
    without = load(model, tokenizer="none")
    assert without.text.described.startswith("normalisation moses, no tokenizer, lower case, subwords")
    assert without.align(tokens, TARGET).source_words == tuple(tokens.split())
    assert not load(model, lowercase=False).text.lowercase
    escaped = load(model, moses_no_escape=False)
    assert escaped.text.options["moses_no_escape"] is False
    assert escaped.text.options["moses_no_dash_splits"] is True
    for stated in ({"bpe_codes": model / "codes.bpe"}, {"bpe": "none"}):
        text = load(model, **stated).text
        assert (text.tokenizer, text.lowercase) == (None, False)


OUTSIDE = "outside of the directory of the profile"


@pytest.mark.parametrize(
    ("recipe", "text"),
    [
        ({"surprise": 1}, "keys are missing or unknown"),
        *(({"files": {"bpe_codes": [name]}}, OUTSIDE) for name in ("../codes.bpe", "/etc/passwd", "below/codes.bpe")),
        ({"files": {}, "bpe": "gpt2", "options": {"gpt2_vocab_bpe": "../x"}}, f"gpt2_vocab_bpe … {OUTSIDE}"),
        ({"files": {"bpe_codes": ["gone.bpe"]}}, "gone.bpe: no such file, but the profile names it"),
        ({"languages": ["../de", "en"]}, "is a path"),
    ],
)
def test_bad_recipes(model, profile, recipe, text):
    profile(**recipe)
    with pytest.raises(InputError, match=facts(text)):
        load(model)


def test_the_languages_are_of_the_profile(model, profile):
    """Two dictionaries do not say which is the source; a checkpoint may not say so either."""
    state = torch.load(model / "checkpoint.pt", weights_only=True)
    state["cfg"]["task"].update(source_lang=None, target_lang=None)
    torch.save(state, model / "checkpoint.pt")
    profile(languages=None)
    with pytest.raises(InputError, match=facts("dictionaries of de and en, … give both: -s de -t en or -s en -t de")):
        fairseq_norm_plugin.load(model / "checkpoint.pt")
    profile(languages=["de", "en"])
    assert fairseq_norm_plugin.load(model / "checkpoint.pt").languages == ("de", "en")
    assert fairseq_norm_plugin.load(model / "checkpoint.pt", target_lang="en").languages == ("de", "en")
    with pytest.raises(InputError, match=facts("dictionaries of de and en")):
        fairseq_norm_plugin.load(model / "checkpoint.pt", profile="none")


def test_no_profile_is_none_everywhere(model, profile, caplog):
    profile(model="another")  # would be refused
    caplog.set_level("INFO", "fairseq_norm_plugin")
    loaded = load(model, profile="none", bpe_codes=model / "codes.bpe")
    assert (loaded.text.tokenizer, loaded.text.lowercase) == (None, False)
    assert loaded.align("wir sind hier .", "we are here .").ok
    assert "{0}" in loaded.translate("wir sind {0} hier .").target
    assert "profile: none" in caplog.text
    assert "align.json" not in caplog.text
    assert "tokenizer moses" not in caplog.text


def test_words_that_a_file_gives(lines_run, tmp_path):
    words = written(tmp_path / "words", [SOURCE.replace("Haus;", "Haus ;"), "Ja."])
    sides = {"sources": [SOURCE, "Ja."], "targets": [TARGET, "Yes."]}
    first, second = map(json.loads, lines_run("--words", words, "whitespace", **sides, out="out.jsonl").lines)
    found = [first["source"][start:end] for start, end in first["source_spans"]]
    assert found == words.read_text().splitlines()[0].split()
    assert [first["target"][start:end] for start, end in first["target_spans"]] == TARGET.split()
    assert second["links"] == [[0, 0]]
