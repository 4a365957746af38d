"""Loading models of one direction and of both."""

import copy
import pickle
from argparse import Namespace
from pathlib import Path

import pytest
import torch

import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import MapName
from fairseq_norm_plugin.model.languages import find_languages
from fairseq_norm_plugin.model.load import guided_maps
from tests.demo import DEMO
from tests.facts import facts

CODES = DEMO / "codes.bpe"


def test_bundled_models_are_found_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    both = [(model.languages[0], model.name) for model in fairseq_norm_plugin.load("demo").both]
    assert both == [("de", f"{DEMO}/checkpoint.pt"), ("en", f"{DEMO}/checkpoint.en-de.pt")]
    assert len(fairseq_norm_plugin.load("demo", reverse_path="none").both) == 1
    (tmp_path / "p.json").write_bytes((DEMO / "checkpoint.pt.align.json").read_bytes())
    (tmp_path / "codes.bpe").symlink_to(CODES)
    stated = fairseq_norm_plugin.load("demo", profile="p.json")
    places = [str(model.profile) for model in stated.both]
    assert places == ["p.json", f"{DEMO}/checkpoint.en-de.pt.align.json"]  # a profile is of one model
    with pytest.raises(InputError, match=r"demo: no such file"):  # a path
        fairseq_norm_plugin.load("./demo", DEMO, "de", "en")


def test_stated_languages_choose_the_direction():
    for stated in ({"source_lang": "en"}, {"target_lang": "de"}, {"source_lang": "en", "target_lang": "de"}):
        model = fairseq_norm_plugin.load("demo", **stated)
        names = [(one.languages, Path(one.name).name) for one in model.both]
        assert names == [(("en", "de"), "checkpoint.en-de.pt"), (("de", "en"), "checkpoint.pt")]
    files = DEMO / "checkpoint.pt", DEMO / "checkpoint.en-de.pt"
    for reverse in ("none", files[1]):
        with pytest.raises(UsageError, match=facts("checkpoint.pt: was trained from de to en … from en to de")):
            fairseq_norm_plugin.load(files[0], None, "en", "de", reverse_path=reverse)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("split_sentences", "split_sentences: an option … align … not of load"),
        ("beam", "beam: an option … translate, not of load"),
        ("lowecase", "load has no option lowecase; do you mean lowercase? (options: bpe,"),
    ],
)
def test_options_that_load_has_not(name, message):
    with pytest.raises(UsageError, match=facts(message)):
        fairseq_norm_plugin.load("demo", **{name: 1})


def test_words_of_one_side_only():
    with pytest.raises(UsageError, match=facts("words ['tokens']: … both sides … source and target")):
        fairseq_norm_plugin.load("demo", words=["tokens"])


def test_a_copied_or_pickled_model_is_loaded_again():
    model = fairseq_norm_plugin.load("demo", words=["whitespace", "tokens"])
    pair = "Das ist gut.", "That is good."
    for other in (copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        assert other.align(*pair).to_row() == model.align(*pair).to_row()
    model.loaded_by = None
    with pytest.raises(UsageError, match=facts("load it in each process … fairseq_norm_plugin.AlignBatch")):
        pickle.dumps(model)


@pytest.mark.parametrize(
    ("names", "languages"),
    [
        (["test.de-en.de.idx", "checkpoint.ro-hu.pt"], ("de", "en")),
        (["train.de-en.de", "test1.de-en.en.bin"], ("de", "en")),
        (["checkpoint.en-de.pt", "dict.de.txt", "model.ro-hu.best.pt"], "no binarised data"),
        (["test.de-en.de.idx", "test.ro-en.en.idx"], "de-en, ro-en"),
    ],
)
def test_languages_are_those_of_binarised_data(tmp_path, names, languages):
    for name in names:
        (tmp_path / name).touch()
    if isinstance(languages, tuple):
        assert find_languages((None, None), None, tmp_path, None) == languages
    else:
        with pytest.raises(InputError, match=f"{languages} to detect the languages from.*-s, -t"):
            find_languages((None, None), None, tmp_path, None)


def test_languages_of_a_profile_count_if_they_are_what_is_stated(tmp_path):
    assert find_languages(("de", None), ("de", "en"), tmp_path, None) == ("de", "en")
    with pytest.raises(InputError, match="no binarised data"):
        find_languages(("fr", None), ("de", "en"), tmp_path, None)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda state: state["model"].pop("decoder.layers.0.fc1.weight"), "parameters do not fit .*fc1"),
        (lambda state: state["model"].update({"more\x1b": torch.zeros(2)}), "parameters do not fit .*more"),
        (lambda state: setattr(state["cfg"]["model"], "encoder_attention_heads", 7), "AssertionError"),
        (lambda state: setattr(state["cfg"]["model"], "encoder_attention_heads", -4), "heads is -4: expected 1 head"),
        (lambda state: state["cfg"].update(bpe="${x}"), "cannot read its options of tokenizer and subwords"),
    ],
)
def test_weights_that_do_not_fit_the_options(tmp_path, change, problem):
    state = torch.load(DEMO / "checkpoint.pt", weights_only=True)
    change(state)
    torch.save(state, tmp_path / "c.pt")
    with pytest.raises(InputError, match=rf"c\.pt: .*{problem}") as error:
        fairseq_norm_plugin.load(tmp_path / "c.pt", DEMO, "de", "en", bpe=None if "tokenizer" in problem else "none")
    assert str(error.value).isprintable()


@pytest.mark.parametrize("line", [b"word x\n", b"\xff 3\n", b"<pad> 3\n"], ids=str)
def test_damaged_dictionaries(tmp_path, line):
    for name in ("dict.de.txt", "dict.en.txt"):
        (tmp_path / name).write_bytes(line + (DEMO / name).read_bytes())
    with pytest.raises(InputError, match=r"not the dictionaries of the model") as error:
        fairseq_norm_plugin.load(DEMO / "checkpoint.pt", tmp_path, "de", "en")
    assert str(error.value).isprintable()


GUIDED = (MapName(0, 0, "awi"), MapName(1, 0, "awi"), MapName(2, None, "awo"))


def options(maps):
    return Namespace(model=Namespace(guided_maps=maps))


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ([options("0.0,1.0:awi,2:awo")], GUIDED),  # AWI unless stated, as in training
        *(([options(maps)], ()) for maps in ("0.0:awi", "2:awo,1:awo", "", "the best", None, 7)),
        ([Namespace(model=Namespace())], ()),
        ([options("0.0,1.0,2:awo")] * 2, GUIDED),
        ([options("0.0,1.0,2:awo"), options("0.0,2:awo")], ()),
    ],
)
def test_maps_of_both_settings_that_all_members_share(members, expected):
    assert guided_maps(members) == expected
