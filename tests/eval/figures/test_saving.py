from __future__ import annotations

import warnings
from functools import partial
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure
from PIL import Image

from alignment_eval.errors import InputError, UsageError
from alignment_eval.figures.saving import ENDINGS, figure_ending, save_figure
from tests.facts import facts


def figure(text: str = "some text") -> Figure:
    made = Figure(figsize=(2, 1))
    axes = made.add_subplot(label=text)
    axes.plot([0, 1], [1, 0], marker="o", clip_on=True)  # clip paths and markers get ids in SVG
    axes.set_title(text)
    return made


@pytest.mark.parametrize("ending", ENDINGS)
def test_same_figure_same_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    save_figure(figure(), tmp_path / f"a.{ending}", "described")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1000000000")  # another date
    save_figure(figure(), tmp_path / f"b.{ending}", "described")
    assert (tmp_path / f"a.{ending}").read_bytes() == (tmp_path / f"b.{ending}").read_bytes()
    save_figure(figure("other"), tmp_path / f"b.{ending}", "described")
    assert (tmp_path / f"a.{ending}").read_bytes() != (tmp_path / f"b.{ending}").read_bytes()


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF"), ("PDF", b"%PDF")]
)
def test_the_ending_tells_the_format(tmp_path: Path, ending: str, start: bytes) -> None:
    save_figure(figure(), tmp_path / f"a.{ending}")
    assert (tmp_path / f"a.{ending}").read_bytes().startswith(start)


def test_description_and_text(tmp_path: Path) -> None:
    for ending in ENDINGS:
        save_figure(figure(), tmp_path / f"a.{ending}", "kind:attn_n|layer:1")
    with Image.open(tmp_path / "a.png") as image:
        assert image.text["Description"] == "kind:attn_n|layer:1"  # type: ignore[attr-defined]
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "<dc:description>kind:attn_n|layer:1</dc:description>" in svg
    assert "<dc:date>" not in svg
    assert ">some text</text>" in svg
    pdf = (tmp_path / "a.pdf").read_bytes()
    assert b"/Subject (kind:attn_n|layer:1)" in pdf
    assert b"CreationDate" not in pdf
    assert b"/Type3" not in pdf  # which some publishers refuse


def test_a_file_has_the_size_of_the_figure(tmp_path: Path) -> None:
    for ending in ENDINGS:
        save_figure(figure(), tmp_path / f"a.{ending}", dpi=100)
    with Image.open(tmp_path / "a.png") as image:
        assert image.size == (200, 100)
    assert 'width="144pt" height="72pt"' in (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert b"/MediaBox [ 0 0 144 72 ]" in (tmp_path / "a.pdf").read_bytes()


def test_huge_bitmaps_are_coarser(tmp_path: Path) -> None:
    huge = Figure(figsize=(400, 0.5))
    huge.add_axes((0, 0, 1, 1))
    save_figure(huge, tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert 11_000 < image.width < 13_000


@pytest.mark.parametrize(("name", "found"), [("a", ""), ("a.jpg", "jpg"), ("a.png.gz", "gz"), (".png", "")])
def test_unknown_ending(tmp_path: Path, name: str, found: str) -> None:
    message = facts(f"ending '{found}' … .png, .svg, .pdf")
    with pytest.raises(UsageError, match=message):
        figure_ending(name)
    with pytest.raises(UsageError, match=message):
        save_figure(figure(), tmp_path / name)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("ending", ENDINGS)
def test_nothing_half_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str) -> None:
    path = tmp_path / f"a.{ending}"
    path.write_text("old")
    broken = figure()

    def stop(*args: object, **kwargs: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(broken.axes[0].lines[0], "draw", stop)
    with pytest.raises(KeyboardInterrupt):
        save_figure(broken, path)
    assert path.read_text() == "old"
    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        save_figure(figure(), path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"absent/a\.png: "):
        save_figure(figure(), tmp_path / "absent" / "a.png")
    assert not list(tmp_path.iterdir())


def test_settings_stay_as_they_are_and_missing_glyphs_are_not_warned_of(tmp_path: Path) -> None:
    before = dict(matplotlib.rcParams)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert save_figure(figure("漢字"), tmp_path / "a.png") == "字漢"
    assert dict(matplotlib.rcParams) == before


def test_other_warnings_are_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = figure()
    warning = partial(warnings.warn, "too many ticks", UserWarning, 1)
    monkeypatch.setattr(drawn, "draw", lambda renderer: warning())
    with pytest.warns(UserWarning, match="too many ticks"):
        assert save_figure(drawn, tmp_path / "a.png") == ""
