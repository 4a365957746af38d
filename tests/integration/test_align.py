"""``python -m fairseq_norm_plugin.align``: the links of the long way, resumed runs, bad input."""

from __future__ import annotations

import io
import re
from types import SimpleNamespace

import numpy as np
import pytest

from alignment_eval import cli
from alignment_eval.errors import InputError
from fairseq_norm_plugin import align
from fairseq_norm_plugin.aligner import Aligner, Direction
from fairseq_norm_plugin.parallel_text import ParallelText, Segmenter

BPE_CODES = "#version: 0.2\nb a</w>\nk i\nki ba</w>\n"


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
    kinds = ("--norm-record-kinds", "attn_w,attn_n,attn_n_merged,alti,alti_rollout")
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
        capsys.readouterr()
        status = align.main([str(word) for word in words])
        lines = out.read_text().splitlines() if status == 0 and str(out) != "-" else None
        return SimpleNamespace(status=status, lines=lines, err=capsys.readouterr().err, out=out)

    return start


@pytest.fixture
def extracted(records, tmp_path, capsys):
    """The links of ``align-eval extract``."""

    def start(*options, records=records / "forward"):
        words = ["extract", records, *options, "--output", tmp_path / "extracted"]
        assert cli.main([str(word) for word in words]) == 0, capsys.readouterr().err
        return (tmp_path / "extracted").read_text().splitlines()

    return start


PAPER = ("--kind", "attn_n", "--layer", 0, "--setting", "awo", "--rule", "kobayashi2020")
#: What is done without options, by a model of two layers.
DEFAULT = ("--kind", "attn_n", "--heads", "0,1", "--setting", "awo", "--rule", "two-way=0.3", "--lexicon", 2)


@pytest.mark.parametrize(
    "options",
    [
        PAPER,
        ("--kind", "attn_w", "--layer", 1, "--head", 3, "--setting", "awi", "--rule", "shift-att"),
        ("--kind", "attn_n", "--heads", "1.2,0", "--combine", "product", "--setting", "awo", "--rule", "threshold=0.2"),
        ("--kind", "attn_n", "--heads", "1,0.2:awi", "--setting", "awo", "--rule", "two-way=0.2", "--lexicon", 0),
        ("--kind", "attn_n_merged", "--layer", 1, "--setting", "awi", "--rule", "top-k=2", "--null", "mask"),
        ("--kind", "alti", "--heads", "0,1", "--setting", "awo", "--rule", "kobayashi2020", "--final-punctuation"),
        ("--kind", "alti_rollout", "--layer", 1, "--setting", "awo", "--rule", "kobayashi2020", "--null", "mask"),
    ],
    ids=lambda options: options[1],
)
def test_links_are_those_of_the_long_way(run, extracted, options):
    done = run(*options)
    assert done.status == 0, done.err
    assert done.lines == extracted(*options)
    assert len(set(done.lines)) > 6  # says something


TWO_WAY = ("--kind", "attn_n", "--layer", 0, "--setting", "awo", "--rule", "two-way=0.3", "--lexicon", 2)


def test_a_lexicon_is_of_the_window(run, extracted, records, backward):
    done = run(*TWO_WAY)
    assert done.lines == extracted(*TWO_WAY)
    assert "|lexicon:2|window:10000|" in done.err
    assert run(*TWO_WAY, "--max-tokens", 40, "--overwrite").lines == done.lines
    assert run(*TWO_WAY, "--window", 5, "--overwrite").lines != done.lines
    both = (*TWO_WAY, "--join", "product")
    found = run(*both, "--reverse-path", backward, "--overwrite").lines
    assert found == extracted(*both, "--reverse", records / "reverse")
    assert found != done.lines


def test_defaults(run, extracted):
    done = run()
    assert done.lines == extracted(*DEFAULT)
    assert re.search(
        r"^run:\w{16}\|sentences:12\|kind:attn_n\|heads:0,1\|combine:mean\|setting:awo\|rule:two-way=0.3\|null:mask\|"
        r"final_punctuation:no\|lexicon:2\|window:10000\|",
        done.err,
        re.MULTILINE,
    )
    assert re.search(r"^align: 12 sentences in .* sentences/s$", done.err, re.MULTILINE)


def test_defaults_of_both_directions(run, extracted, records, backward):
    done = run("--reverse-path", backward)
    product = [*DEFAULT, "--join", "product", "--reverse", records / "reverse"]
    product[product.index("two-way=0.3")] = "two-way=0.4"
    assert done.lines == extracted(*product)
    assert "|lexicon:2|" in done.err
    for options in (("--join", "mutual"), ("--join", "average"), ("--symmetrize", "union")):
        assert "|rule:two-way=0.3|" in run("--reverse-path", backward, *options, "--overwrite").err


@pytest.mark.parametrize(
    "options",
    [
        ("--lexicon", 0),
        ("--rule", "kobayashi2020"),
        ("--rule", "threshold=0.2", "--null", "mask"),
        ("--reverse-path", "REVERSE", "--join", "mutual"),
        ("--reverse-path", "REVERSE", "--symmetrize", "union"),
        ("--reverse-path", "REVERSE", "--lexicon", 0),
    ],
    ids=str,
)
def test_no_lexicon_unless_the_default_way(run, options, backward):
    done = run(*(backward if option == "REVERSE" else option for option in options))
    assert done.status == 0, done.err
    assert "|heads:0,1|combine:mean|setting:awo|" in done.err
    assert "lexicon" not in done.err


def test_defaults_one_by_one(run, extracted):
    changed = ("--kind", "attn_w", "--heads", "1", "--setting", "awo", "--rule", "two-way=0.2")
    done = run("--kind", "attn_w", "--layer", 1, "--rule", "two-way=0.2")
    assert done.lines == extracted(*changed, "--lexicon", 2)


def test_confidences(run, extracted):
    def parsed(lines):
        links = [re.fullmatch(r"(\S+):(\S+)", word).groups() for line in lines for word in line.split()]
        return [link for link, _ in links], [float(p) for _, p in links]

    options = ("--confidences", "--min-confidence", 0.15)
    mine, theirs = parsed(run(*options).lines), parsed(extracted(*DEFAULT, *options))
    assert mine[0] == theirs[0]
    assert mine[1] == pytest.approx(theirs[1], rel=1e-5)


@pytest.mark.parametrize(
    "batching", [("--window", 1), ("--window", 5, "--max-tokens", 30), ("--max-tokens", 1)], ids=str
)
def test_windows_and_batches_change_nothing(run, extracted, batching):
    assert run(*PAPER, *batching).lines == extracted(*PAPER)


def test_an_ensemble(run, extracted, norm, checkpoint, trained, tmp_path):
    both = f"{checkpoint}:{trained('second', seed=3)}"
    norm("--score-reference", "--norm-records", tmp_path / "ensemble", path=both)
    assert run(*PAPER, "--path", both).lines == extracted(*PAPER, records=tmp_path / "ensemble")


@pytest.mark.parametrize("join", ["mutual", "average"])
def test_both_directions_joined(run, extracted, records, backward, join, monkeypatch):
    load, languages = align.load, []
    monkeypatch.setattr(align, "load", lambda *args, **names: languages.append(args[2:]) or load(*args, **names))
    options = ("--join", join, "--reverse-heads", "1")
    done = run(*PAPER, "--reverse-path", backward, *options, "--confidences", "--min-confidence", 0)
    expected = extracted(*PAPER, "--reverse", records / "reverse", *options)
    assert [re.sub(r":\S+", "", line) for line in done.lines] == expected
    assert f"|join:{join}|reverse_heads:1|" in done.err
    assert languages == [(None, None), ("yy", "xx")]  # the second is not told from the data


@pytest.mark.parametrize(("method", "variant"), [("grow-diag-final", "lilt"), ("grow-diag-final-and", "moses")])
def test_both_directions_symmetrized(run, extracted, records, backward, tmp_path, method, variant):
    for name, source in (("f", "forward"), ("r", "reverse")):
        lines = extracted(*PAPER, records=records / source)
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    how = ("--method", method, "--variant", variant, "--reverse-swap", "--output", str(tmp_path / "both"))
    assert cli.main(["symmetrize", str(tmp_path / "f"), str(tmp_path / "r"), *how]) == 0
    done = run(*PAPER, "--reverse-path", backward, "--symmetrize", method, "--variant", variant)
    assert done.lines == (tmp_path / "both").read_text().splitlines()
    assert f"|symmetrized:{method}|variant:{variant}|" in done.err


def test_a_choice_of_a_two_way_rule_is_joined_by_product(run, extracted, records, backward, tmp_path):
    choice = tmp_path / "choice.json"
    (tmp_path / "gold").write_text("0-0\n" * 12)
    select = ["select", records / "forward", "--dev-gold", tmp_path / "gold", "--gold-base", 0, "--output", choice]
    assert cli.main([str(word) for word in (*select, "--rules", "two-way=0.2", "--mix-settings")]) == 0
    done = run("--choice", choice, "--reverse-path", backward)
    assert done.lines == extracted("--choice", choice, "--reverse", records / "reverse", "--join", "product")
    assert "lexicon" not in done.err


def test_a_model_of_the_other_direction_is_told(run, backward):
    done = run("--path", backward)
    assert done.status == 0
    assert (
        "checkpoint_last.pt was trained from yy to xx and is read from xx to yy: its maps mean little then" in done.err
    )
    assert "trained from" not in run("--reverse-path", backward, "--overwrite").err


def test_a_choice(run, extracted, records, backward, tmp_path, checkpoint):
    choice = tmp_path / "choice.json"
    select = ["select", records / "forward", "--reverse", records / "reverse", "--output", choice]
    assert cli.main([str(word) for word in select]) == 0
    done = run("--choice", choice, "--reverse-path", backward, "--join", "mutual")
    assert done.lines == extracted("--choice", choice, "--reverse", records / "reverse", "--join", "mutual")
    assert "|chosen_by:agreement|" in done.err
    assert "warning" not in done.err
    other = choice.read_text().replace('"model": "', '"model": "0')
    choice.write_text(other)
    assert "of the same number need not do the same in another model" in run("--choice", choice, "--overwrite").err


def test_one_file_and_standard_input(run, files, tmp_path, monkeypatch, capsys):
    expected = run().lines
    pairs = zip(*(file.read_text().splitlines() for file in files))
    joined = "".join(f"{source} ||| {target}\n" for source, target in pairs).encode()
    (tmp_path / "joined").write_bytes(joined)
    assert run("--overwrite", text=[tmp_path / "joined"]).lines == expected
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(joined)))
    assert run("--overwrite", text=["-"]).lines == expected
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(files[1].read_bytes())))
    assert run("--overwrite", text=[files[0], "-"]).lines == expected


def test_progress_is_of_the_models_not_of_the_lexicon(run, monkeypatch):
    """With a lexicon the first line comes when the whole window has been read; the bar does not wait for it."""
    seen, batches = [], Aligner.batches

    def observed(self, pairs, progress):
        counts = []
        for batch in batches(self, pairs, lambda count: counts.append(count) or progress(count)):
            seen.append((len(batch), sum(counts)))
            yield batch
        assert sum(counts) == len(pairs)

    monkeypatch.setattr(Aligner, "batches", observed)
    run("--max-tokens", 40)
    assert seen == [(0, 0), (12, 12)]
    seen.clear()
    run(*PAPER, "--max-tokens", 40, "--overwrite")
    assert [total for _, total in seen] == list(np.cumsum([count for count, _ in seen]))
    assert len(seen) > 2


def test_standard_output(data, checkpoint, files, capsys, run):
    expected = run().lines
    words = ["--path", checkpoint, "--data", data, "--source-text", files[0], "--target-text", files[1], "-o", "-"]
    assert align.main([str(word) for word in (*words, "--bpe", "none", "--cpu")]) == 0
    assert capsys.readouterr().out.splitlines() == expected


# -- stopped and continued ---------------------------------------------------------------------------------------


@pytest.fixture
def stopped(run, monkeypatch):
    """A run that was stopped in its third window of 4 sentences."""
    maps, batches = Direction.maps, []

    def counted(self, pairs):
        batches.append(sorted(pairs))
        if len(batches) == 3:
            raise RuntimeError("the disk is full")
        return maps(self, pairs)

    monkeypatch.setattr(Direction, "maps", counted)
    with pytest.raises(RuntimeError, match="the disk is full"):
        run(*PAPER, "--window", 4)
    return batches


def test_a_stopped_run_is_continued(run, stopped, extracted, tmp_path):
    assert not (tmp_path / "out.pharaoh").exists()
    done = run(*PAPER, "--window", 4, "--resume")
    assert done.lines == extracted(*PAPER)
    assert stopped[3:] == [[8, 9, 10, 11]]
    assert "align: 4 sentences in " in done.err
    assert "8 kept from before" in done.err
    assert "warning" not in done.err
    assert [path.name for path in tmp_path.glob("*out.pharaoh*")] == ["out.pharaoh"]


def test_a_stopped_run_is_replaced(run, stopped, extracted):
    assert run(*PAPER, "--window", 4, "--overwrite").lines == extracted(*PAPER)
    assert stopped[3:] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ((), "is begun (2 parts) already: give --resume to keep what is there, --overwrite to begin anew, or name "),
        (("--resume", "--layer", 1), "is of another run (its extraction.layer differ): expected an empty directory"),
    ],
)
def test_a_stopped_run_is_not_taken_for_another(run, stopped, options, text):
    done = run(*PAPER, "--window", 4, *options)
    assert done.status == 1
    assert text in done.err
    assert "-o" in done.err
    assert "--norm" not in done.err


def test_a_finished_run_is_kept(run):
    before = run().lines
    for options in ((), ("--resume",)):
        done = run(*options)
        assert done.status == 1
        assert "there is a file already: expected a new one; name another or give --overwrite" in done.err
    assert run("--overwrite").lines == before


# -- text as it comes --------------------------------------------------------------------------------------------


def changed(files, tmp_path, changes):
    """The text with some of its lines replaced: {line, from 0: (source, target)}."""
    lines = [list(pair) for pair in zip(*(file.read_text().splitlines() for file in files))]
    for number, pair in changes.items():
        lines[number] = pair
    paths = [tmp_path / "changed.xx", tmp_path / "changed.yy"]
    for path, side in zip(paths, zip(*lines)):
        path.write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    return paths


def test_empty_and_long_sentences_have_blank_lines(run, extracted, files, tmp_path):
    long = " ".join(["ba"] * 1024)
    changes = {1: ("", "ab"), 3: ("ba", " "), 5: (long, "ab"), 6: ("ba", long), 11: ("", "")}
    done = run(*PAPER, "--window", 3, text=changed(files, tmp_path, changes))
    expected = extracted(*PAPER)
    assert done.lines == ["" if number in changes else line for number, line in enumerate(expected)]
    assert "warning: 3 sentence pairs are empty, their lines are blank (the first is line 2)" in done.err
    assert (
        "warning: 2 sentence pairs are longer than 1024 tokens, their lines are blank (the first is line 6)" in done.err
    )


def test_unknown_subwords_are_counted_in_their_words(run, files, tmp_path):
    """The binarised text would not tell that an unknown piece is only a piece; and <pad> is a word here."""
    done = run(text=changed(files, tmp_path, {0: ("zz@@ ba </s> <pad> qq@@ qq@@ ki", "<pad> ik zz@@ zz ab </s>")}))
    assert done.status == 0, done.err
    links = [tuple(map(int, link.split("-"))) for link in done.lines[0].split()]
    assert links
    assert all(i <= 3 and j <= 4 for i, j in links)


def test_blank_lines_from_before_a_stop_are_told(run, files, tmp_path, monkeypatch):
    text = changed(files, tmp_path, {2: ("", ""), 9: ("", "")})
    sorted_batches = Aligner.batches

    def failing(self, pairs, progress):
        if 8 in pairs:
            raise RuntimeError("the disk is full")
        return sorted_batches(self, pairs, progress)

    with monkeypatch.context() as patch:
        patch.setattr(Aligner, "batches", failing)
        with pytest.raises(RuntimeError, match="the disk is full"):
            run("--window", 4, text=text)
    done = run("--window", 4, "--resume", text=text)
    assert "warning: 1 lines were left blank before the stop" in done.err
    assert "warning: 1 sentence pairs are empty, their lines are blank (the first is line 10)" in done.err


def test_text_of_another_kind_is_told(run, files, tmp_path):
    done = run(text=changed(files, tmp_path, dict.fromkeys(range(11), ("This is English .", "ab"))))
    assert done.status == 0
    assert re.search(
        r"warning: 44 of \d+ source subwords so far are unknown to the model: are language, token", done.err
    )
    assert "target subwords" not in done.err


def test_codes_of_the_other_model_are_checked_too(run, files, tmp_path, backward):
    (tmp_path / "good").write_text("#version: 0.2\nb a</w>\na b</w>\n")
    (tmp_path / "bad").write_text("#version: 0.2\nb a</w>\n")
    options = ("--reverse-path", backward, "--join", "mutual", "--reverse-bpe-codes", tmp_path / "bad")
    text = changed(files, tmp_path, dict.fromkeys(range(12), ("ba", "ab")))
    done = run(*options, text=text, bpe=("--bpe-codes", tmp_path / "good"))
    assert done.status == 0
    (warning,) = (line for line in done.err.splitlines() if line.startswith("warning: "))
    assert warning.startswith("warning: 24 of 24 reverse source subwords so far are unknown to the model: ")


def test_subword_nmt_codes_are_applied(run, files, tmp_path, command, bin_directory, backward):
    codes, words, pieces = [], [], []
    for file, content in zip(files, (BPE_CODES, "#version: 0.2\na b</w>\ni k</w>\ni k\n")):
        codes.append(tmp_path / f"codes{file.suffix}")
        codes[-1].write_text(content)
        words.append(tmp_path / f"words{file.suffix}")
        words[-1].write_text(file.read_text().replace("@@ ", ""))
        pieces.append(tmp_path / f"pieces{file.suffix}")
        result = command(bin_directory / "subword-nmt", "apply-bpe", "-c", codes[-1], "-i", words[-1])
        pieces[-1].write_text(result.stdout)
    for options in ((), ("--reverse-path", backward, "--symmetrize", "union")):
        expected = run(*options, "--overwrite", text=pieces).lines
        assert run(*options, "--overwrite", text=words, bpe=("--bpe-codes", *codes)).lines == expected
        assert run(*options, "--overwrite", text=words, bpe=("--bpe-codes", codes[0])).lines != expected


def test_a_word_is_one_word_whatever_is_in_it(tmp_path):
    (tmp_path / "codes").write_text(BPE_CODES)
    segment = Segmenter(str(tmp_path / "codes"))
    words = ["kiba", "ba", "x@@", "a\u00a0b", "</s>", "kiki"]
    pieces, numbers = segment(words)
    spelled = ["".join(p for p, n in zip(pieces, numbers) if n == k).replace("@@", "") for k in range(len(words))]
    assert spelled == [word.replace("@@", "") for word in words]
    assert pieces[:2] == ["kiba", "ba"]
    assert (np.diff(numbers) >= 0).all()


# -- bad input ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other", "text"),
    [
        (b"a\nb\n", b"a\n", r"other: 1 lines, but .*one has 2: expected as many, line by line the translations"),
        (b"a\n", b"", r"other: the file is empty"),
        (b"\xff\n", b"a\n", r"one: not UTF-8 \(byte 0\)"),
        (b"a ||| b\n\n a b\n", None, r"one:3: 0 separators \|\|\|: expected one, SOURCE \|\|\| TARGET"),
        (b"a ||| b ||| c\n", None, r"one:1: 2 separators"),
    ],
)
def test_bad_text(tmp_path, one, other, text):
    paths = []
    for name, content in (("one", one), ("other", other)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
            paths.append(str(tmp_path / name))
    with pytest.raises(InputError, match=text):
        ParallelText(paths)


def test_pairs_of_a_text(tmp_path):
    (tmp_path / "one").write_bytes("a\u00a0b  c ||| d\r\n\n||| e".encode())
    text = ParallelText([str(tmp_path / "one")])
    assert text.size == 3
    assert list(text) == list(text) == [(["a\u00a0b", "c"], ["d"]), ([], []), ([], ["e"])]


@pytest.mark.parametrize(
    ("options", "status", "text"),
    [
        (("--lexicon", -1), 2, "--lexicon -1: expected a number of passes, 1 or more, or 0 for no lexicon"),
        (
            ("--reverse-path", "REVERSE", "--symmetrize", "union", "--rule", "two-way=0.3", "--lexicon", 1),
            2,
            "--lexicon with --symmetrize: links are drawn before; expected --join product",
        ),
        (
            ("--lexicon", 1, "--rule", "kobayashi2020"),
            2,
            "a lexicon with rule 'kobayashi2020' and null 'allow': it weighs maps between words",
        ),
        (("--bpe-codes", "c"), 2, "expected --bpe-codes CODES of the model, or --bpe none"),
        (("--text", "t"), 2, "the text is named by --source-text and --target-text or by --text: expected one of"),
        (("--source-text", "-", "--target-text", "-"), 2, "both texts are - (standard input)"),
        (("--source-text", "none.xx"), 1, "none.xx: no such file"),
        (("--join", "mutual"), 2, "--join without --reverse-path: expected a model of both directions"),
        (("--reverse-path", "r", "--rule", "top-k=2"), 2, "expected one of --join and --symmetrize"),
        (("--head", 1), 2, "maps are named by a layer (and a head) or by heads: expected one of the two"),
        (
            ("--reverse-path", "r", "--symmetrize", "union", "--confidences"),
            2,
            "--symmetrize has links without a share",
        ),
        (("--reverse-path", "r", "--symmetrize", "grow-diag-final-and", "--variant", "lilt"), 2, "of variant lilt"),
        (
            ("--reverse-path", "REVERSE", "--join", "average", "--rule", "shift-att"),
            2,
            "join 'average' with rule 'shift",
        ),
        (("--layer", "max-norm"), 2, "--layer max-norm reads all maps before the first link"),
        (("--choice", "c", "--layer", 1), 2, "--layer beside --choice"),
        (("--choice", "c"), 1, "c: cannot be read"),
        (("--layer", 2), 2, "map 2 (LAYER.HEAD, or LAYER for a whole one): "),
        (("--heads", "0.4"), 2, "has 2 decoder layers of 4 heads, counted from 0"),
        (("--kind", "alti", "--layer", 0, "--head", 1), 2, "head 0.1 of kind alti: that kind has maps of whole layers"),
        (("--resume", "--overwrite"), 2, "--resume and --overwrite contradict each other"),
        (("--min-confidence", 2), 2, "--min-confidence 2: expected a share of a row, from 0 to 1"),
        (("--path", "none.pt"), 1, "none.pt: no such file"),
        (("-s", "xx", "-t", "zz"), 1, "dict.zz.txt: no such file"),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_usage(run, options, status, text, tmp_path, backward):
    done = run(*(backward if option == "REVERSE" else option for option in options))
    assert (done.status, done.err.count("\n")) == (status, 1), done.err
    assert done.err.startswith("align: ")
    assert text in done.err
    assert not list(tmp_path.glob("*out*"))


def test_codes_of_another_form(run, tmp_path):
    (tmp_path / "codes").write_text("three pieces here\n")
    done = run(bpe=("--bpe-codes", tmp_path / "codes"))
    assert done.status == 1
    assert "codes: cannot be read as BPE codes: expected a file of subword-nmt learn-bpe" in done.err


def test_dictionaries_of_another_model(run, data, tmp_path):
    for lang in ("xx", "yy"):
        (tmp_path / f"dict.{lang}.txt").write_text("ba 1\n")
    done = run("--data", tmp_path, "-s", "xx", "-t", "yy")
    assert done.status == 1
    assert "the checkpoint knows 40 source tokens, the task 5: expected the dictionaries" in done.err
