"""The files of a directory as it was released, and where a profile is."""

from pathlib import Path

import pytest

from alignment_eval.errors import InputError, UsageError
from alignment_eval.profiles.profile import TextRecipe
from fairseq_norm_plugin.checkpoints.files import Release, find_files, is_of_transformers, profile_file
from tests.facts import facts


@pytest.fixture
def directory(tmp_path):
    """Make a directory of empty files."""

    def make(*names):
        for name in names:
            (tmp_path / name).touch()
        return tmp_path

    return make


@pytest.mark.parametrize(
    ("names", "members", "subwords"),
    [
        (["model.pt", "bpecodes", "dict.de.txt"], [["model.pt"]], (None, "bpe_codes", "bpecodes")),
        (["model2.pt", "model1.pt", "bpecodes"], [["model1.pt"], ["model2.pt"]], (None, "bpe_codes", "bpecodes")),
        (
            ["418M_last_checkpoint.pt", "spm.128k.model", "model_dict.128k.txt"],
            [["418M_last_checkpoint.pt"]],
            ("sentencepiece", "sentencepiece_model", "spm.128k.model"),
        ),
        (
            ["checkpoint.pt", "source.spm", "target.spm"],
            [["checkpoint.pt"]],
            ("sentencepiece", "sentencepiece_model", "source.spm", "target.spm"),
        ),
        (["checkpoint_best.pt", "checkpoint_last.pt", "checkpoint3.pt"], [["checkpoint_best.pt"]], None),
        (["model-shard0.pt", "model-shard1.pt"], [["model-shard0.pt", "model-shard1.pt"]], None),
        (["checkpoint.pt", "config.json", "model.safetensors"], [["checkpoint.pt"]], None),
    ],
)
def test_released_directories(directory, names, members, subwords):
    path = directory(*names)
    files = find_files(path, None)
    assert [list(parts) for parts in files.members] == [[str(path / name) for name in parts] for parts in members]
    assert (files.data, files.found, is_of_transformers(path)) == (path, True, False)
    bpe, option, *own = subwords or (None, None)
    assert files.text == TextRecipe(bpe=bpe, files={option: [str(path / name) for name in own]} if own else {})


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["model1.pt", "model3.pt"], "model2.pt: no such file, but there is one of number 3"),
        (["m-shard0.pt", "m-shard2.pt"], "m-shard1.pt: no such file, but there is one of number 2"),
        (["a.pt", "b.pt"], "a.pt, b.pt: expected one checkpoint"),
        ([], "no checkpoint (.pt)"),
        (["model.pt", "target.spm"], "source.spm: no such file, but … of the other side"),
        (["model.pt", "bpecodes", "spm.model"], "has bpecodes and spm.model: say which with --bpe"),
    ],
)
def test_what_is_missing(directory, names, text):
    with pytest.raises(InputError, match=facts(text)):
        find_files(directory(*names), None)


def test_files_that_are_named(directory):
    path = directory("a.pt", "b.pt", "bpecodes", "c-shard0.pt", "c-shard1.pt")
    files = find_files(f"{path / 'a.pt'}:{path / 'b.pt'}", path)
    assert (files.name, files.text, files.found) == (f"{path / 'a.pt'}:{path / 'b.pt'}", TextRecipe(), False)
    assert files.checkpoints == [str(path / "a.pt"), str(path / "b.pt")]
    assert [len(parts) for parts in find_files(path / "c-shard0.pt", path).members] == [2]
    with pytest.raises(InputError, match=r"no\.pt: no such file"):
        find_files(f"{path / 'a.pt'}:{path / 'no.pt'}", None)
    with pytest.raises(InputError, match=r"owner/opus-de-fr: no such file.* hf download owner/opus-de-fr --local-dir"):
        find_files("owner/opus-de-fr", None)
    with pytest.raises(InputError, match=r"nowhere: no such directory"):
        find_files(path / "a.pt", path / "nowhere")
    with pytest.raises(UsageError, match=r"a\.pt: .*--data"):
        find_files(path / "a.pt", None)


def test_dictionaries_of_languages_or_of_all(directory):
    path = directory("dict.de.txt", "dict.en.txt", "model_dict.128k.txt")
    files = Release([], path).dictionary_files
    assert files(("de", "en")) == [str(path / "dict.de.txt"), str(path / "dict.en.txt")]
    assert files(("de", "fr")) == [str(path / "model_dict.128k.txt")] * 2
    assert files(("de", "en"), str(path / "dict.de.txt")) == [str(path / "dict.de.txt")] * 2
    (path / "model_dict.128k.txt").unlink()
    with pytest.raises(InputError, match=r"dict\.fr\.txt: no such file"):
        files(("de", "fr"))
    with pytest.raises(InputError, match=r"none\.txt: no such file"):
        files(("de", "fr"), "none.txt")


@pytest.mark.parametrize(
    ("checkpoints", "direction", "name"),
    [
        (["d/a.pt"], None, "a.pt.align.json"),
        (["d/a.pt", "d/b.pt"], "de-en", "a.pt+1.de-en.align.json"),
        (["d/a.pt"], "en-x/y", "a.pt.en-x_y.align.json"),
    ],
)
def test_a_profile_is_beside_the_checkpoint(checkpoints, direction, name):
    assert profile_file(checkpoints, direction) == Path("d") / name
