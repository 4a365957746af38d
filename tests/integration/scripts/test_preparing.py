"""Scripts that prepare text and clean up, run as a user runs them."""

import re
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from tests.facts import says
from tests.integration.scripts.preparing import LANGUAGES, names, run


@pytest.fixture
def corpus(tmp_path):
    """Writes a corpus from bytes, prepares it, and returns the process and the paths of the outputs."""

    def prepare(source, target, *options):
        (tmp_path / "raw.s").write_bytes(source)
        (tmp_path / "raw.t").write_bytes(target)
        files = ("--source", tmp_path / "raw.s", "--target", tmp_path / "raw.t")
        out = tmp_path / "out" / "train"
        done = run("prepare_corpus.py", *files, *LANGUAGES, "--out", out, *options)
        return done, Path(f"{out}.de"), Path(f"{out}.en")

    return prepare


def test_corpus_exact(corpus, tmp_path):
    (tmp_path / "gold.de").write_text("das ist geheim !\n\n.\n", encoding="utf-8")
    (tmp_path / "gold.en").write_text("nobody 's secret\n", encoding="utf-8")
    pairs = [
        ("Größe & „Maß“, z.B. hier.", "It's <so> \"big\" & 'good'."),
        ("", "A blank source."),
        ("Ein leeres Ziel.", " \t"),
        ("DAS ist geheim!", "This is a secret."),
        ("Ein anderer Satz.", "Nobody's secret."),
        (101 * "eins ", 100 * "one "),
        (10 * "eins ", "one"),
        (100 * "eins ", 12 * "one "),
        ("Punkt .", "."),
        ("eins zwei drei vier", "Dot."),
    ]
    source, target = ("\r\n".join(side) for side in zip(*pairs))
    done, de, en = corpus(
        source.encode("cp1252"),
        target.encode("cp1252"),
        *("--encoding", "cp1252", "--lowercase"),
        *("--exclude", tmp_path / "gold.de", tmp_path / "gold.en"),
    )
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == (
        f"{tmp_path}/out/train: 10 pairs read, 4 kept; "
        f"dropped: 2 a blank side, 2 in an excluded text, 1 too long, 1 too uneven\n"
    )
    long = [" ".join(count * [word]) for count, word in ((100, "eins"), (12, "one"))]
    assert de.read_text() == f'größe & " maß " , z.b. hier .\n{long[0]}\npunkt .\neins zwei drei vier\n'
    assert en.read_text() == f"it 's < so > \" big \" & ' good ' .\n{long[1]}\n.\ndot .\n"
    assert names(tmp_path / "out") == ["train.de", "train.en"]


def test_gold_keeps_lines_and_words(corpus):
    source = "Die Straße  ist naß, z.B. .\r\n\r\nÄpfel \tfallen .\r\n".encode("latin1")
    target = b"<s snum=0001> The street's wet .  </s>\n\n<s snum=0002></s>\n<s snum=0003> Apples fall . </s>\n"
    done, de, en = corpus(source, target, "--gold", "--lowercase", "--encoding", "latin1")
    assert done.returncode == 0, done.stderr
    assert "3 pairs read, 3 kept; " in done.stderr
    assert de.read_bytes() == "die straße ist naß, z.b. .\n\näpfel fallen .\n".encode()
    assert en.read_bytes() == b"the street's wet .\n\napples fall .\n"


def test_what_exists_is_replaced_only_on_demand(corpus):
    _, de, _ = corpus(b"a\n", b"b\n")
    done, _, _ = corpus(b"c\n", b"d\n")
    assert (done.returncode, says(done.stderr, "train.de: already exists … --overwrite")) == (1, True)
    assert de.read_bytes() == b"a\n"
    assert corpus(b"c\n", b"d\n", "--overwrite")[0].returncode == 0
    assert de.read_bytes() == b"c\n"


@pytest.mark.shared
def test_gold_of_vilar_et_al(shared, corpus, program, tmp_path):
    """The commands of data/README.md."""
    directory = shared / "data/gold/vilar508"
    raw = [(directory / f"test.uc.{side}").read_text(encoding="utf-8").encode("latin1") for side in ("de", "en")]
    done, *texts = corpus(*raw, "--gold", "--lowercase", "--encoding", "latin1")
    assert "508 pairs read, 508 kept" in done.stderr
    for text, words in zip(texts, (9945, 10413)):
        assert text.read_bytes() == (directory / f"test{text.suffix}").read_bytes().rstrip(b"\n") + b"\n"
        assert len(text.read_text(encoding="utf-8").split()) == words
    talp = ("--to", "talp", "--to-base", 1, "--source", texts[0], "--target", texts[1], "-o", tmp_path / "talp")
    program("align-eval", "convert", directory / "alignment.talp", "--from-base", 1, *talp)
    made = (tmp_path / "talp").read_text()
    assert [len(re.findall(rf"\d{mark}\d", made)) for mark in "-p"] == [9613, 921]
    given = (directory / "alignment.talp").read_text().splitlines()
    assert [set(line.split()) for line in made.splitlines()] == [set(line.split()) for line in given]


@pytest.mark.parametrize(
    ("files", "options", "status", "message"),
    [
        ((b"a\n\nc\n", b"x\nz\n"), (), 1, "TMP/raw.t ends after 2 lines, but TMP/raw.s goes on"),
        ((b"a\n\xe4\n", b"x\ny\n"), (), 1, "TMP/raw.s:2: byte 0xe4 is not utf-8 … --encoding"),
        ((b"a\n\n", b"\ny\n"), (), 1, "TMP/raw.s: no pair is left (2 pairs read, 0 kept; dropped: 2 a blank side"),
        ((b"<s snum=1> a b </s>\nc\n", b"u\nv\n"), ("--gold",), 1, "TMP/raw.s:2: … <s snum=2> text </s>"),
        ((b"u\nv\n", "a b\nc\u00a0d\n".encode()), ("--gold",), 1, "TMP/raw.t:2: … space … fairseq"),
    ],
)
def test_bad_input_leaves_nothing(corpus, tmp_path, files, options, status, message):
    done, de, _ = corpus(*files, *(option.replace("TMP", str(tmp_path)) for option in options))
    assert (done.returncode, done.stdout) == (status, "")
    assert says(done.stderr, message.replace("TMP", str(tmp_path)))
    assert names(de.parent) == []


# -- scripts/prepare_bpe.sh


@pytest.fixture
def texts(tmp_path):
    """Small prepared texts: train, valid, test (with a blank sentence) and dev."""
    sides = {
        "de": ("das haus ist klein .", "ein kleines buch .", "häuser sind klein .\n\nbuch ."),
        "en": ("the house is small .", "a small book .", "houses are small .\n\nbook ."),
    }
    for language, (train, valid, test) in sides.items():
        training = f"{train} das@@\n{valid}\n" * 5
        for name, text in (("train", training), ("valid", f"{valid}\n"), ("dev", f"{train}\n")):
            (tmp_path / f"{name}.{language}").write_text(text, encoding="utf-8")
        (tmp_path / f"test.{language}").write_text(f"{test}\n", encoding="utf-8")
    return tmp_path


def bpe(texts, *options):
    inputs = ("--train", texts / "train", "--valid", texts / "valid", "--test", texts / "test")
    out = texts / "out" / "bpe"
    return run("prepare_bpe.sh", *inputs, *LANGUAGES, "--merges", 8, "--out", out, *options), out


def token_counts(binarised, split, language):
    """Tokens of each sentence of a binarised text, </s> included, as fairseq reads it."""
    dictionary = Dictionary.load(str(binarised / f"dict.{language}.txt"))
    dataset = data_utils.load_indexed_dataset(str(binarised / f"{split}.de-en.{language}"), dictionary)
    return [len(dataset[i]) for i in range(len(dataset))]


def check_split(out, split, prefix):
    """Pieces spell the text's words, line by line, and the binarised text has as many tokens."""
    for language in ("de", "en"):
        pieces = (out / "bpe" / f"{split}.{language}").read_text(encoding="utf-8").splitlines()
        words = Path(f"{prefix}.{language}").read_text(encoding="utf-8").splitlines()
        assert [f"{line} ".replace("@@ ", "").rstrip() for line in pieces] == words
        assert any("@@ " in line for line in pieces)
        assert token_counts(out / "bin", split, language) == [len(line.split()) + 1 for line in pieces]


def test_bpe_separate(texts):
    done, out = bpe(texts, "--separate", "--test", f"{texts}/test,{texts}/dev")
    assert done.returncode == 0, done.stderr
    assert names(out) == ["bin", "bpe", "codes.de", "codes.en"]
    assert names(out.parent) == ["bpe"]
    assert (out / "bin/dict.de.txt").read_bytes() != (out / "bin/dict.en.txt").read_bytes()
    assert (out / "codes.de").read_bytes() != (out / "codes.en").read_bytes()
    for split, name in (("train", "train"), ("valid", "valid"), ("test", "test"), ("test1", "dev")):
        check_split(out, split, texts / name)
    assert token_counts(out / "bin", "test", "de")[1] == 1  # the blank sentence keeps its place
    report = done.stdout.splitlines()
    assert len(report) == 8
    assert report[0].startswith("[de] bpe/train.de: 10 sents, ")
    assert report[2].startswith("[de] bpe/test.de: 3 sents, ")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("valid.en", "a\n\n", "valid.en: 2 lines, but TMP/valid.de has 1"),
        ("test.de", "das@@ haus .\n\nbuch .\n", "test.de: its pieces do not spell it again"),
        (
            "test.de",
            "das haus .\r\n\nbuch\r.\n",
            "test.de: fairseq read 4 sents, 16 tokens: expected 3 sents, 14 tokens",
        ),
    ],
)
def test_bad_texts_leave_nothing(texts, name, content, message):
    (texts / name).write_text(content, encoding="utf-8")
    done, out = bpe(texts)
    assert (done.returncode, done.stdout) == (1, "")
    assert says(done.stderr, f"prepare_bpe.sh: {texts}/{message}".replace("TMP", str(texts)))
    assert names(out.parent) == []


# -- scripts/clean.sh: it deletes only what carries its own mark


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
