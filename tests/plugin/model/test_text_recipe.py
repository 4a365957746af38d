"""Tokenizer and subwords: as stated, as a directory has them, as a checkpoint says."""

import pytest
from omegaconf import OmegaConf

from alignment_eval.errors import InputError, UsageError
from fairseq_norm_plugin.checkpoints.files import find_files
from fairseq_norm_plugin.model.text_recipe import text_settings

FAR = {
    "tokenizer": {"_name": "moses", "source_lang": "en", "target_lang": "en", "moses_no_escape": True},
    "bpe": {"_name": "fastbpe", "bpe_codes": "/training/wmt/bpecodes"},
}


@pytest.fixture
def read(tmp_path):
    """The settings of a model whose directory has ``names``, named as a directory or by its checkpoint."""

    def make(*names, cfg=None, released=True, **stated):
        for name in ("model.pt", *names):
            (tmp_path / name).touch()
        files = find_files(tmp_path, None) if released else find_files(tmp_path / "model.pt", tmp_path)
        section = OmegaConf.create(cfg or {"tokenizer": None, "bpe": None})
        settings, found = text_settings(stated, ("whitespace", "whitespace"), "auto", files, section)
        return settings.tokenizer, settings.bpe, dict(settings.options), found

    return make


def test_as_the_directory_has_them(read, tmp_path):
    assert read("bpecodes") == (None, None, {"bpe_codes": str(tmp_path / "bpecodes")}, True)
    expected = "moses", None, {"bpe_codes": str(tmp_path / "bpecodes")}, True
    assert read("bpecodes", tokenizer="moses") == expected
    assert read("bpecodes", bpe="none") == (None, "none", {}, False)
    assert read("bpecodes", bpe="fastbpe") == (None, "fastbpe", {"bpe_codes": str(tmp_path / "bpecodes")}, True)


def test_as_the_checkpoint_says(read, tmp_path):
    options = {"bpe_codes": str(tmp_path / "bpecodes"), "moses_no_escape": True}
    assert read("bpecodes", cfg=FAR, released=False) == ("moses", "fastbpe", options, True)
    assert read("bpecodes", cfg=FAR) == ("moses", None, options, True)
    assert read("bpecodes", cfg=FAR, released=False, bpe="none") == (None, "none", {}, False)
    assert read(released=False) == (None, None, {}, False)
    words = "sentencepiece", {"sentencepiece_model": "/far/spm.model"}
    (tmp_path / "spm.model").touch()
    cfg = {"tokenizer": None, "bpe": {"_name": words[0], **words[1]}}
    (tmp_path / "bpecodes").unlink()
    assert read(cfg=cfg, released=False)[1:3] == ("sentencepiece", {"sentencepiece_model": str(tmp_path / "spm.model")})


def test_files_that_are_missing(read):
    with pytest.raises(InputError, match=r"/bpecodes: no such file.*'/training/wmt/bpecodes'.*--bpe-codes FILE"):
        read(cfg=FAR, released=False)
    with pytest.raises(UsageError, match=r"--bpe fastbpe needs .* --bpe-codes"):
        read(bpe="fastbpe")
