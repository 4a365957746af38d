from __future__ import annotations

from types import SimpleNamespace

import pytest

from fairseq_norm_plugin.hooks.other_direction import other_languages, warn_of_run


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


def test_each_model_of_a_run_is_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    models = [
        SimpleNamespace(args=SimpleNamespace(source_lang="de", target_lang="en")),
        SimpleNamespace(args=SimpleNamespace(source_lang="en", target_lang="de")),
        SimpleNamespace(),
    ]
    cfg = SimpleNamespace(source_lang="de", target_lang="en", norm_checkpoint="a.pt:b.pt:c.pt")
    warn_of_run(SimpleNamespace(cfg=cfg, language_tags=()), models)
    (warning,) = capsys.readouterr().err.splitlines()
    assert "b.pt was trained from en to de, but is used from de to en" in warning
    warn_of_run(SimpleNamespace(cfg=cfg, language_tags=("__en__",)), models)
    assert capsys.readouterr().err == ""
