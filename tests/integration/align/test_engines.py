"""``norm-align`` of Parquet, to Parquet, and on Ray; and the example of docs/scale.md, as it stands there."""

import json
import logging
import re
import sys

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from fairseq_norm_plugin import AlignBatch
from fairseq_norm_plugin.align import cli as align
from tests.demo import DEMO, lines, written
from tests.facts import content
from tests.integration.align.conftest import PAPER
from tests.integration.conftest import ROOT

SOURCES, TARGETS = lines("de"), lines("en")


@pytest.fixture(scope="module")
def corpus(files, tmp_path_factory):
    """The pairs of the text in two Parquet files, with ids."""
    directory = tmp_path_factory.mktemp("parquet") / "corpus.parquet"
    directory.mkdir()
    source, target = (file.read_text(encoding="utf-8").splitlines() for file in files)
    table = pa.table({"id": [f"pair {100 - number}" for number in range(12)], "source": source, "target": target})
    pq.write_table(table[:7], directory / "0.parquet")
    pq.write_table(table[7:], directory / "1.parquet")
    return directory


def test_parquet(run, corpus, tmp_path):
    options = (*PAPER[:-2], "--rule", "two-way=0.3", "--table", "text", "--confidences")
    expected = run(*options).lines
    assert run(*options, "--overwrite", text=[corpus]).lines == expected
    done = run(*options, text=[corpus], out=tmp_path / "links.parquet")
    assert done.status == 0, done.err
    table = pq.read_table(tmp_path / "links.parquet").to_pydict()
    assert table["id"] == [f"pair {100 - number}" for number in range(12)]
    assert table["status"] == ["ok"] * 12
    for links, confidences, line in zip(table["links"], table["confidences"], expected):
        assert " ".join(f"{i}-{j}:{p!r}" for (i, j), p in zip(links, confidences)) == line
    assert run(*options, text=[corpus], out=tmp_path / "links.parquet").status == 1


def test_ray_is_not_installed(run, corpus, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    done = run("--ray", text=[corpus], out=tmp_path / "links")
    assert (done.status, "--ray: the package ray cannot be imported" in done.err) == (1, True)


@pytest.fixture(scope="module")
def ray():
    """Ray, with a cluster on this machine that the commands of the module share."""
    ray = pytest.importorskip("ray", reason="Ray is not installed")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_USAGE_STATS_ENABLED", "0")
        try:
            ray.init("local", num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level=logging.CRITICAL)
        except Exception as error:  # a bare one
            if "timed out during startup" not in str(error):
                raise
            ray.shutdown()
            pytest.skip("the machine is too busy: Ray gives its own node 30 s to start")
        yield ray
        ray.shutdown()


def test_on_ray(ray, tmp_path, capsys):
    """It writes what one process writes, of text of any form, and with a table that is counted on it."""
    pairs = {
        "id": [f"p{k}" for k in range(12)],
        "source": [*SOURCES[:10], "", "x"],
        "target": [*TARGETS[:10], "x", "y"],
    }
    for part in range(2):
        pq.write_table(pa.table(pairs)[6 * part : 6 * part + 6], tmp_path / f"{part}.parquet")
    written(tmp_path / "joined", [f"{one} ||| {other}" for one, other in zip(SOURCES[:12], TARGETS[:12])])
    words = ["--path", DEMO / "checkpoint.pt", "--data", DEMO, "-s", "de", "-t", "en", "--window", 2, "--cpu"]
    words += ["--bpe-codes", DEMO / "codes.bpe"]

    def run(*options, out=tmp_path / "links"):
        status = align.main([str(word) for word in (*words, "-o", out, *options)])
        return status, capsys.readouterr().err

    for name, *options in (("*.parquet", "--scores"), ("joined", "--table", "text", "--profile", "none")):
        options = ["--text", tmp_path / name, "--overwrite", *options]
        assert run(*options, out=f"{tmp_path}/here/")[0] == 0
        status, err = run(*options, "--ray", 2)
        assert status == 0, err
        assert content(tmp_path / "links") == content(tmp_path / "here")
        assert "|sentences:12|" in f"|{err.splitlines()[-1]}"
        assert ("1 empty (the first is line" in err) == (name != "joined")
    assert ray.is_initialized()
    written(tmp_path / "bad", ["<b>a ||| x"])
    status, err = run("--text", tmp_path / "bad", "--ray", 1, "--markup", "xml", "--overwrite")
    assert (status, "--ray: " in err or "bad:1: " in err) == (1, True)
    status, err = run("--text", tmp_path / "joined", "--ray", out="-")
    assert (status, "directory" in err) == (2, True)


PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.filterwarnings("ignore")  # Ray's own: of pandas 3, of sockets that are still open
@pytest.mark.slow
def test_example_of_the_page(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is not installed")
    (tmp_path / "data").symlink_to(ROOT / "data")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    table = pa.table({"id": range(20), "source": lines("de")[:20], "target": lines("en")[:20]})
    pq.write_table(table, "pairs.parquet")
    names = {}
    for block in (BLOCKS[0], *(block for block in BLOCKS if "import ray" in block)):
        exec(block, names)
    found = pq.read_table("links").to_pydict()
    expected = AlignBatch(**names["MODEL"])(table).to_pydict()
    for name in ("id", "status", "links", "source_spans", "target_spans"):  # lists, or arrays
        assert json.dumps(found[name], default=list) == json.dumps(expected[name], default=list)
    assert [len(confidences) for confidences in found["confidences"]] == [len(x) for x in expected["confidences"]]
    names["ray"].shutdown()
