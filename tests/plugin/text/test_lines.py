"""Sentence pairs from text files and from Parquet files."""

import os
import threading

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from alignment_eval.errors import AlignmentWarning, InputError
from fairseq_norm_plugin.text.lines import PairReader, of_files, of_lists, of_parquet, with_words
from fairseq_norm_plugin.text.pair import TextPipeline
from fairseq_norm_plugin.text.subwords import MarkedSubwords
from tests.facts import facts


def words_of(text):
    reader = PairReader(text, (TextPipeline(MarkedSubwords("none")),) * 2)
    return [pair.words for pair in reader.read_all()]


def test_pairs_of_a_text(tmp_path):
    (tmp_path / "one").write_bytes("a\u00a0b  c ||| d\r\n\n||| e".encode())
    text = of_files([str(tmp_path / "one")])
    assert text.size == 3
    for _ in range(2):
        assert words_of(text) == [(("a\u00a0b", "c"), ("d",)), ((), ()), ((), ("e",))]
    (tmp_path / "one").write_text("a ||| b\n\n a b\n")
    with pytest.raises(InputError, match=facts("one:3: 0 separators |||: expected one, SOURCE ||| TARGET")):
        of_files([str(tmp_path / "one")])


@pytest.mark.parametrize("name", ["pairs.tsv", "pairs"])
def test_pairs_between_tabs(tmp_path, name):
    """The first two columns; a name that ends in .tsv says so where the text has separators."""
    (tmp_path / name).write_text("\na b\tA ||| B\t0.5\n\tx\n".replace("|||", "|||" if "." in name else "|"))
    words = ("A", "|||" if "." in name else "|", "B")
    with pytest.warns(AlignmentWarning, match=facts(f"{name}: … two columns: 1 … line 2 'a b' and 'A")):
        text = of_files([str(tmp_path / name)])
    pairs = words_of(text)
    assert pairs == [((), ()), (("a", "b"), words), ((), ("x",))]
    (tmp_path / name).write_text("a\tb\na b\n")
    with pytest.raises(InputError, match=facts(f"{name}:2: no tab: expected SOURCE, a tab, TARGET")):
        of_files([str(tmp_path / name)])


def test_words_that_a_file_gives(tmp_path):
    """Each line's words are found in it; the other side's words are the pipeline's."""
    for name, content in (("one", "我们今天来 ||| we come today\n ||| x\n"), ("words", "我们 今天 来\n\n")):
        (tmp_path / name).write_text(content)
    text = of_files([str(tmp_path / "one")])
    cut = with_words(text, (str(tmp_path / "words"), None))
    assert words_of(cut) == [(("我们", "今天", "来"), ("we", "come", "today")), ((), ("x",))]
    assert words_of(text)[0][0] == ("我们今天来",)
    assert cut.hashes[:-1] == text.hashes
    (tmp_path / "words").write_text("我们今天来\n今\n")
    with pytest.raises(InputError, match=facts("words: the text was changed")):
        cut.check_unchanged()
    with pytest.raises(InputError, match=facts("words:2: word 1 of the segmentation, '今', does not come next")):
        words_of(with_words(text, (str(tmp_path / "words"), None)))
    (tmp_path / "words").write_text("我们\n")
    with pytest.raises(InputError, match=facts("words: 1 lines, but the text has 2: expected the words of each")):
        with_words(text, (str(tmp_path / "words"), None))


def test_a_pipe_is_read_once_and_kept(tmp_path):
    """What a shell gives for <(command)."""
    (tmp_path / "other").write_text("x\ny\n")
    os.mkfifo(tmp_path / "pipe")
    writing = threading.Thread(target=(tmp_path / "pipe").write_text, args=("a\nb\n",))
    writing.start()
    text = of_files([str(tmp_path / "pipe"), str(tmp_path / "other")])
    writing.join()
    for _ in range(2):
        assert words_of(text) == [(("a",), ("x",)), (("b",), ("y",))]
    text.check_unchanged()


def test_words_of_lists():
    text = of_lists(["ab c", "d"], ["x", ["y", "z"]], ([["a", "b", "c"], ["d"]], None))
    assert words_of(text) == [(("a", "b", "c"), ("x",)), (("d",), ("y", "z"))]
    with pytest.raises(InputError, match=facts("target_words: words of 1 sentences, but 2 pairs")):
        of_lists(["a", "b"], ["x", "y"], (None, [["x"]]))
    with pytest.raises(InputError, match=facts("source[1]: word 1 of the segmentation, 'e'")):
        words_of(of_lists(["a", "d"], ["x", "y"], ([["a"], ["e"]], None)))


GOOD = {"source": ["a b", "", "c"], "target": ["A", "B", "C D"]}


def write(directory, **files):
    for name, table in files.items():
        pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), directory / f"{name}.parquet")


@pytest.mark.parametrize("place", ["", "*.parquet", "[ab].parquet"])
def test_pairs_of_several_files(tmp_path, place):
    other = pa.table({"target": ["E"], "source": ["e"], "more": [1]})
    dictionary = pa.table({name: pa.array(values).dictionary_encode() for name, values in GOOD.items()})
    write(tmp_path, b=other, a=dictionary)
    for ignored in ("_SUCCESS", ".a.crc"):
        (tmp_path / ignored).touch()
    text = of_parquet(str(tmp_path / place))
    pairs = [(("a", "b"), ("A",)), ((), ("B",)), (("c",), ("C", "D")), (("e",), ("E",))]
    assert (text.size, words_of(text)) == (4, pairs)
    assert [pair.id for pair in text.pairs()] == [0, 1, 2, 3]
    text.check_unchanged()
    write(tmp_path, b=GOOD)
    with pytest.raises(InputError, match=facts("b.parquet: the text was changed")):
        text.check_unchanged()


@pytest.mark.parametrize("ids", [[5, 2, 9], ["x", "a", "é"]])
def test_ids(tmp_path, ids):
    write(tmp_path, a={**GOOD, "id": ids})
    assert [pair.id for pair in of_parquet(str(tmp_path)).pairs()] == ids


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"target": None}, "a.parquet: no column target among 'source'; give … source and target"),
        ({"source": [1, 2, 3]}, "column source has type int64, expected text"),
        ({"source": ["a", None, "b"]}, "row 1, from 0, has null as its source"),
        ({"id": [1, None, 2]}, "row 1, from 0, has null as its id"),
        ({name: pa.array([], pa.string()) for name in GOOD}, "no rows"),
    ],
)
def test_bad_columns(tmp_path, change, text):
    columns = {name: values for name, values in {**GOOD, **change}.items() if values is not None}
    write(tmp_path, a=columns)
    with pytest.raises(InputError, match=facts(text)):
        of_parquet(str(tmp_path / "a.parquet"))


def test_bad_places(tmp_path):
    with pytest.raises(InputError, match=facts("no such Parquet file")):
        of_parquet(str(tmp_path / "*.parquet"))
    write(tmp_path, a=GOOD, b={**GOOD, "id": [1, 2, 3]})
    with pytest.raises(InputError, match=facts("b.parquet: … column id has type int64, but None in … a.parquet")):
        of_parquet(str(tmp_path))
    (tmp_path / "notes.txt").write_text("a\n")
    with pytest.raises(InputError, match=facts("holds 'notes.txt' … glob")):
        of_parquet(str(tmp_path))
    (tmp_path / "c.parquet").write_text("no table")
    with pytest.raises(InputError, match=facts("c.parquet: damaged, or not a Parquet file of sentence pairs")):
        of_parquet(str(tmp_path / "c.parquet"))
