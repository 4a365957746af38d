"""``norm-align`` in this process, and the long way to the same links."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from alignment_eval import commands as cli
from alignment_eval.profiles.profile import fit_profile
from alignment_eval.records import Records
from fairseq_norm_plugin.align import cli as align
from fairseq_norm_plugin.model.model import Model
from tests.demo import MODEL, written

PAPER = ("--kind", "attn_n", "--heads", 0, "--setting", "awo", "--rule", "kobayashi2020")
#: The methods that make maps and translations of a batch.
ALIGNING, TRANSLATING = (Model, "maps"), (Model, "search")


@pytest.fixture(scope="module")
def files(data):
    """The text of the subset ``test``, 12 pairs, as it was binarised."""
    return [data.parent / f"text2.{lang}" for lang in ("xx", "yy")]


@pytest.fixture(scope="module")
def backward(trained):
    return trained("backward", "-s", "yy", "-t", "xx", seed=2, updates=40)


@pytest.fixture(scope="module")
def records(norm, backward, tmp_path_factory):
    """Records of the long way: both directions."""
    directory = tmp_path_factory.mktemp("records")
    kinds = ("--norm-record-kinds", "attn_w,attn_n,attn_logit,attnresln_n,alti,alti_rollout")
    norm("--score-reference", "--norm-records", directory / "forward", *kinds)
    norm("--score-reference", "--norm-records", directory / "reverse", *kinds, "-s", "yy", "-t", "xx", path=backward)
    return directory


@pytest.fixture
def run(data, checkpoint, files, tmp_path, capsys):
    """Align in this process; (status, lines or None, stderr)."""

    def start(*options, out=None, text=files, bpe=("--bpe", "none")):
        out = out or tmp_path / "out.pharaoh"
        texts = ["--source-text", text[0], "--target-text", text[1]] if len(text) == 2 else ["--text", text[0]]
        words = ["--path", checkpoint, "--data", data, *texts, "-o", out, *bpe, "--cpu", *options]
        # the model has learned too little to find the pairs of its text
        words += [] if "--ray" in options else ["--force"]
        capsys.readouterr()
        status = align.main([str(word) for word in words])
        is_text = not str(out).endswith((".parquet", "-")) and out.is_file()
        lines = out.read_text().splitlines() if status == 0 and is_text else None
        return SimpleNamespace(status=status, lines=lines, err=capsys.readouterr().err, out=out)

    return start


@pytest.fixture
def default(records, tmp_path):
    """What is done with --table text, by models of two layers whose text is too short to choose maps by."""
    forward, reverse = (
        fit_profile((), (0, 1), str(Records(records / name).info.signature["model"])) for name in ("forward", "reverse")
    )
    (tmp_path / "profile").write_text(forward.with_reverse(reverse).to_json())
    return "--profile", tmp_path / "profile", "--table", "text"


@pytest.fixture
def extracted(records, tmp_path, capsys):
    """The links of ``align-eval extract``."""

    def start(*options, records=records / "forward"):
        words = ["extract", records, *options, "--output", tmp_path / "extracted", "--overwrite"]
        assert cli.main([str(word) for word in words]) == 0, capsys.readouterr().err
        return (tmp_path / "extracted").read_text().splitlines()

    return start


@pytest.fixture
def lines_run(program, tmp_path):
    """norm-align of lines with the bundled models: its status, stdout, stderr, and the lines of its output or None."""

    def start(*options, sources, targets=None, models=MODEL, out="out"):
        words = [*models, "--source-text", written(tmp_path / "source", sources), "--cpu"]
        words += [] if targets is None else ["--target-text", written(tmp_path / "target", targets)]
        out = out if out == "-" else f"{tmp_path}/{out}"
        done = program("norm-align", *words, "-o", out, *options, check=False)
        done.status, done.out, done.err = done.returncode, done.stdout, done.stderr
        is_text = not out.endswith((".parquet", "/", "-")) and Path(out).exists()
        done.lines = Path(out).read_text(encoding="utf-8").split("\n")[:-1] if is_text else None
        return done

    return start


@pytest.fixture
def stop():
    """Let a method fail from the call ``calls`` on, the first is 0; None: it does not.  The batches that it got."""
    with pytest.MonkeyPatch.context() as patch:

        def at(calls, method=ALIGNING, error=KeyboardInterrupt):
            patch.undo()
            original, batches = getattr(*method), []

            def counted(self, pairs, *what, **named):
                if len(batches) == calls:
                    raise error
                batches.append(sorted(pairs))
                return original(self, pairs, *what, **named)

            patch.setattr(*method, counted)
            return batches

        yield at
