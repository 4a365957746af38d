"""Synthetic sentences and records, and a browser.

The factories are stateless, so hypothesis may share them.
"""

import contextlib
import io
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from alignment_eval.commands import main
from alignment_eval.maps.sentence import DEFAULT_KINDS, SentenceMaps, SentenceSide, word_indices
from alignment_eval.parts import RunInfo
from alignment_eval.records import arrow_schema, to_table

SPECIAL = ("</s>", "<de>", "<en>")


def side(text, mark="@@"):
    tokens = tuple(text.split())
    return SentenceSide(tokens, word_indices(tokens, mark, [token in SPECIAL for token in tokens]))


def sentence(
    id_=0, source="a@@ b c . </s>", target="x y@@ z . </s>", layers=2, heads=3, mark="@@", status="ok", **fields
):
    """A sentence of random maps (float32, the seed is its id), or a stub with an empty pair if ``status`` is not ok."""
    if status != "ok":
        empty = SentenceSide((), np.empty(0, dtype=np.int32))
        return SentenceMaps(id=id_, source=empty, target=empty, layers=tuple(range(layers)), status=status, **fields)
    rng = np.random.default_rng(id_)
    source_side, target_side = side(source, mark), side(target, mark)
    T, S = len(target_side.tokens), len(source_side.tokens)
    arrays = {
        "head_attn_w": rng.dirichlet(np.ones(S), size=(layers, heads, T)),
        "transformed_norm": rng.uniform(0.1, 3, size=(layers, heads, S)),
        "layer_attn_n": rng.uniform(0.1, 3, size=(layers, T, S)),
    }
    fields = {"arrays": {name: array.astype(np.float32) for name, array in arrays.items()}, **fields}
    return SentenceMaps(id=id_, source=source_side, target=target_side, layers=tuple(range(layers)), **fields)


def records(directory, sentences, shards=1, quantities=("head_attn_w", "transformed_norm", "layer_attn_n"), **info):
    """Write ``sentences`` as the records directory of a run, sentence k in shard k modulo ``shards``."""
    sentences = list(sentences)
    directory.mkdir(parents=True, exist_ok=True)
    layers = sentences[0].layers if sentences else (0, 1)
    heads = next((s.heads for s in sentences if s.ok), 0)
    known = {
        "content": "records",
        "signature": {"model": "synthetic"},
        "kinds": DEFAULT_KINDS,
        "layers": layers,
        "heads": heads,
        "size": len({s.id for s in sentences}),
        "nbest": 1,
    }
    for shard in range(shards):
        run = RunInfo(**{**known, **info, "shard": shard, "shards": shards})
        table = to_table(sentences[shard::shards], arrow_schema(run, quantities))
        pq.write_table(table, directory / run.part_name(0), use_dictionary=False, write_page_checksum=True)
    return directory


@pytest.fixture(scope="session")
def make_side():
    return side


@pytest.fixture(scope="session")
def make_sentence():
    return sentence


@pytest.fixture(scope="session")
def make_records():
    return records


@pytest.fixture(scope="session")
def align_eval():
    """Run ``align-eval ARGUMENTS`` in this process; test_docs.py has the whole commands."""

    def run(*args):
        words, files = [str(argument) for argument in args], [io.BytesIO(), io.BytesIO()]
        out, err = (io.TextIOWrapper(file, encoding="utf-8") for file in files)
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                status = main(words)
            except SystemExit as error:  # argparse
                status = int(error.code or 0)
            out.flush()
            err.flush()
        return subprocess.CompletedProcess(words, status, *(file.getvalue().decode() for file in files))

    return run


@pytest.fixture(scope="session")
def call(align_eval):
    """Exit status, stdout and stderr of ``align-eval ARGUMENTS``."""

    def run(*arguments):
        done = align_eval(*arguments)
        return done.returncode, done.stdout, done.stderr

    return run


@pytest.fixture
def files(request, tmp_path, monkeypatch):
    """Write a file in the working folder of the test, which has the FILES of its module."""
    monkeypatch.chdir(tmp_path)

    def write(name, text):
        Path(name).write_text(text, encoding="utf-8")

    for name, text in request.module.FILES.items():
        write(name, text)
    return write


@pytest.fixture(scope="session")
def published():
    """Read the published table of a folder: file -> AER, precision, recall in percent, number of links."""

    def read(folder):
        row = re.compile(r"(\S+): ([\d.]+)% \(([\d.]+)%/([\d.]+)%/(\d+)\)")
        matches = [row.fullmatch(line.strip()) for line in (folder / "deen-results.txt").read_text().splitlines()]
        assert all(matches)
        return {m[1]: (float(m[2]), float(m[3]), float(m[4]), int(m[5])) for m in matches if m}

    return read


@pytest.fixture(scope="module")
def chromium():
    """A browser without a window; on Debian ``apt-get install chromium chromium-driver`` brings it."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (browser and driver):
        pytest.skip("no chromium and chromedriver on the PATH (Debian: apt-get install chromium chromium-driver)")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driven = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    driven.set_script_timeout(20)
    yield driven
    driven.quit()
