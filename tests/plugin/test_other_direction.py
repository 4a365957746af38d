from __future__ import annotations

from types import SimpleNamespace

import pytest

from fairseq_norm_plugin import checkpoints
from fairseq_norm_plugin.other_direction import other_languages, warn_of_run


@pytest.mark.parametrize(
    ("trained", "expected"),
    [
        (SimpleNamespace(source_lang="en", target_lang="de"), ("en", "de")),
        (SimpleNamespace(source_lang="de", target_lang="en"), None),
        (SimpleNamespace(source_lang=None, target_lang=None), None),
        (SimpleNamespace(), None),
        (None, None),
    ],
)
def test_languages_of_another_direction(trained: object, expected: object) -> None:
    assert other_languages(trained, ("de", "en")) == expected


def test_each_checkpoint_that_fairseq_read_is_looked_at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read = {
        "a.pt": SimpleNamespace(source_lang="de", target_lang="en"),
        "b.pt": SimpleNamespace(source_lang="en", target_lang="de"),
        "c.pt": None,
    }
    monkeypatch.setattr(checkpoints, "_TASKS", read)
    cfg = SimpleNamespace(source_lang="de", target_lang="en", norm_checkpoint="a.pt:b.pt:c.pt:d.pt")
    warn_of_run(SimpleNamespace(cfg=cfg, language_tags=()))
    assert capsys.readouterr().err == (
        "warning: b.pt was trained from en to de, but is used from de to en: its maps mean little then; give a model "
        "of that direction, or exchange -s and -t and the two texts\n"
    )
    warn_of_run(SimpleNamespace(cfg=cfg, language_tags=("__en__",)))
    cfg.norm_checkpoint = None
    warn_of_run(SimpleNamespace(cfg=cfg, language_tags=()))
    assert capsys.readouterr().err == ""
