"""What make and scripts delete: only what carries their own mark."""

from tests.integration.scripts.preparing import names, run


def test_clean_removes_what_carries_the_mark(tmp_path):
    for name in ("made here", "elsewhere", "thesis"):
        (tmp_path / name).mkdir()
        (tmp_path / name / ("thesis.tex" if name == "thesis" else ".mark")).touch()
    made, thesis, link = tmp_path / "made here", tmp_path / "thesis", tmp_path / "link"
    link.symlink_to("elsewhere")
    links = [word for name in (link, f"{link}/", f"{link}//") for word in (name, ".mark")]
    done = run("clean.sh", f"{made}/", ".mark", thesis, ".mark", *links, tmp_path / "no", ".mark")
    assert done.returncode == 0
    assert names(tmp_path) == ["elsewhere", "link", "thesis"]
    assert names(thesis) == ["thesis.tex"]
    assert names(tmp_path / "elsewhere") == [".mark"]
    assert [line.split(": ")[1] for line in done.stderr.splitlines()] == [str(thesis), *[str(link)] * 3]
