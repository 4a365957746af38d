import re
from collections import Counter
from xml.etree import ElementTree

import pytest

from alignment_eval.extraction.extract import extract
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.records import Records

#: 1-based; sentence 0 has sure (0, 0) and (2, 2), possible (1, 1).
GOLD = "1-1 2p2 3-3\n\n1-1\n"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def run(tmp_path, make_sentence, make_records):
    """Records of three sentences, a b c . each; the second has no maps."""
    sentences = [make_sentence(0), make_sentence(2), make_sentence(1, status="too long")]
    return make_records(tmp_path / "run", sentences, shards=2)


@pytest.fixture
def gold(tmp_path):
    path = tmp_path / "gold.talp"
    path.write_text(GOLD, encoding="utf-8")
    return path


@pytest.fixture
def plot(call, tmp_path):
    """Run ``plot``, of sentence 0 and into p.svg if nothing else is said."""

    def do(records, *words):
        sentence = () if "--sentence" in words else ("--sentence", 0)
        return call("plot", records, *words, *sentence, *(() if "-o" in words else ("-o", tmp_path / "p.svg")))

    return do


def groups(path, prefix):
    """Id -> number of marks, of the groups whose ids begin with ``prefix``.

    A mark is two paths, a white one and the coloured one on it.
    """
    found = {}
    for group in ElementTree.parse(path).iter(f"{SVG}g"):
        if (name := group.get("id", "")).startswith(prefix):
            styles = [
                element.get("style", "") for element in group.iter() if element.tag in (f"{SVG}path", f"{SVG}use")
            ]
            found[name] = sum("stroke: #000000" in style or "stroke: #d55e00" in style for style in styles)
    return found


def texts(path):
    return ["".join(element.itertext()) for element in ElementTree.parse(path).iter(f"{SVG}text")]


def test_plot_end_to_end(run, gold, tmp_path, align_eval):
    out = tmp_path / "a.svg"
    asked = ("--sentence", 0, "--heads", 1, "--kinds", "attn_w,attn_n", "--setting", "awo")
    done = align_eval("plot", run, *asked, "--gold", gold, "--gold-base", 1, "-o", out)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    signature = done.stderr.rstrip("\n")
    assert re.fullmatch(
        r"records:9e5d467ff709ca60\|sentence:0\|kinds:attn_w,attn_n\|heads:1\|setting:awo\|level:word"
        r"\|rule:kobayashi2020\|null:allow"
        r"\|gold:[0-9a-f]{12}\|gold_format:talp\|gold_base:1\|gold_swap:no\|version:align-eval-.*",
        signature,
    )
    assert signature in out.read_text(encoding="utf-8")

    assert groups(out, "sure") == {"sure-0-0": 2, "sure-0-1": 2}
    assert groups(out, "possible") == {"possible-0-0": 1, "possible-0-1": 1}
    (first,) = (sentence for sentence in Records(run).best() if sentence.id == 0)
    links = [extract(first, ExtractionOptions(kind, "1", setting="awo")) for kind in ("attn_w", "attn_n")]
    assert groups(out, "predicted") == {f"predicted-0-{place}": len(found) for place, found in enumerate(links)}
    shown = texts(out)
    assert {"layer 1, weights", "layer 1, norms"} <= set(shown)
    assert "Sentence 0, AWO; predicted: rule kobayashi2020, null allowed" in " ".join(shown)
    assert {"gold, sure", "gold, possible", "predicted"} <= set(shown)
    labels = Counter(shown)
    assert (labels["ab"], labels["c"], labels["(null)"]) == (2, 2, 2)  # columns of each panel
    assert (labels["x"], labels["yz"], labels["source"], labels["target"]) == (1, 1, 2, 1)  # rows once
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.svg", "gold.talp", "run"]


def test_links_of_a_file(run, tmp_path, plot):
    hyp = tmp_path / "links.pharaoh"
    hyp.write_text("0-0 1-0 2-1 0-2\n\n0-0\n", encoding="utf-8")
    status, _, stderr = plot(run, "--heads", 1, "--kinds", "attn_w,attn_n", "--hyp", hyp)
    assert status == 0
    assert groups(tmp_path / "p.svg", "predicted") == {"predicted-0-0": 4, "predicted-0-1": 4}
    assert f"predicted: {hyp}" in " ".join(texts(tmp_path / "p.svg"))
    assert "|hyp:" in stderr
    assert "|rule:" not in stderr


def test_which_maps_are_drawn(run, tmp_path, plot):
    """Those of ``--heads`` one below the other, the kinds side by side; without it all whole layers."""
    for heads, panels in (((), (2, 2)), (("--heads", "1,0.2,0"), (3, 2))):
        assert plot(run, *heads, "--kinds", "attn_w,attn_n", "--width", "40cm")[0] == 0
        places = [name.split("-")[1:] for name in groups(tmp_path / "p.svg", "predicted")]
        assert tuple(1 + max(int(place[axis]) for place in places) for axis in (0, 1)) == panels
        (tmp_path / "p.svg").unlink()


def test_links_of_aligners_without_records(tmp_path, gold, call):
    files = {"a": "0-0 2-2\n\n0-0\n", "b": "0-0 1-0 2-1\n\n\n", "source": "a b c\nd\nd\n", "target": "x y z\ne\ne f\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    words = ("--source", tmp_path / "source", "--target", tmp_path / "target")
    given = ("--hyp", tmp_path / "a", tmp_path / "b", *words, "--gold", gold, "--gold-base", 1)
    out = tmp_path / "p.svg"
    status, _, signature = call("plot", "--sentence", 0, *given, "-o", out)
    assert status == 0, signature
    assert groups(out, "predicted") == {"predicted-0-0": 2, "predicted-0-1": 3}
    assert groups(out, "sure") == {"sure-0-0": 2, "sure-0-1": 2}
    assert {"a", "b", "c", "x", "y", "z", "Sentence 0"} <= set(texts(out))
    assert signature.startswith("sentence:0|hyp_1:")
