"""A checkpoint that would run code: every way in reads it with the plugin's reader first."""

import shlex
import shutil
import sys
from pathlib import Path

import pytest
import torch

from tests.demo import DEMO


class Hostile:
    def __init__(self, victim):
        self.victim = victim

    def __reduce__(self):
        return (Path.touch, (self.victim,))


@pytest.fixture(scope="module")
def place(tmp_path_factory, program):
    """The bundled model, whose checkpoint would create the file ``victim``, and binarised text."""
    place = tmp_path_factory.mktemp("hostile")
    model = place / "model"
    shutil.copytree(DEMO, model)
    state = torch.load(model / "checkpoint.pt", weights_only=True)
    torch.save({**state, "extra_state": {"hook": Hostile(place / "victim")}}, model / "checkpoint.pt")
    text = ["--testpref", DEMO / "demo", "--validpref", DEMO / "demo", "--destdir", place / "bin"]
    dictionaries = ["--srcdict", DEMO / "dict.de.txt", "--tgtdict", DEMO / "dict.en.txt"]
    program("fairseq-preprocess", "-s", "de", "-t", "en", *text, *dictionaries)
    return place


PLUGIN = "--user-dir fairseq_norm_plugin --task translation_norm --cpu"
WAYS = {
    "load": f"{sys.executable} -c \"import fairseq_norm_plugin as fnp; fnp.load('{{model}}')\"",
    "generate": "fairseq-generate {place}/bin --path {model} {plugin}",
}


@pytest.mark.parametrize("way", WAYS)
def test_no_way_in_runs_it(place, command, way):
    values = {"place": place, "model": place / "model/checkpoint.pt", "plugin": PLUGIN}
    words = shlex.split(WAYS[way].format(**values))
    # fairseq's newer main branch asks torch to run what a checkpoint holds; so does this variable, for every fairseq
    result = command(*words, check=False, TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD="1")
    assert result.returncode == 1
    assert "checkpoint.pt: the file holds" in result.stderr
    assert "could run code" in result.stderr
    assert not (place / "victim").exists()


def test_the_file_is_hostile_indeed(place):
    torch.load(place / "model/checkpoint.pt", weights_only=False)
    assert (place / "victim").exists()
    (place / "victim").unlink()
