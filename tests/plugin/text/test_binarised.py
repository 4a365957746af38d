"""What the text behind a data set says of its tokens."""

import pytest
import torch
from fairseq.data import AppendTokenDataset, ConcatDataset, LanguagePairDataset, PrependTokenDataset
from fairseq.data.indexed_dataset import IndexedRawTextDataset

from fairseq_norm_plugin.text.tokens import SideReader, TextLines, side_readers, surface
from tests.plugin.dictionaries import dictionary_of, vocabulary_of


@pytest.fixture
def vocabulary():
    return vocabulary_of("a", "b")


@pytest.fixture
def ids(vocabulary):
    dictionary = vocabulary.dictionary
    return torch.tensor([dictionary.unk(), dictionary.index("a"), dictionary.index("b"), dictionary.eos()])


def raw(path, text, dictionary):
    path.write_text(text, encoding="utf-8")
    return IndexedRawTextDataset(str(path), dictionary)


def test_lines_of_a_text(tmp_path):
    (tmp_path / "t").write_bytes("\ufeffx@@ a\r\n\na\u00a0b  c".encode())
    lines = TextLines(tmp_path / "t", 3)
    assert [lines.tokens(i) for i in range(3)] == [["x@@", "a"], [], ["a\u00a0b", "c"]]
    assert (lines.name, len(lines.hash)) == (str(tmp_path / "t"), 12)


def test_a_text_goes_before_what_the_data_set_knows(tmp_path, vocabulary, ids):
    """Also of a sentence that --truncate-source has cut."""
    text = raw(tmp_path / "raw", "x@@ a b a a\n", vocabulary.dictionary)
    pairs = LanguagePairDataset(text, text.sizes, vocabulary.dictionary, text, text.sizes, vocabulary.dictionary)
    (tmp_path / "t").write_text("y a b\n")
    with_text, without = side_readers(pairs, 1, (vocabulary, vocabulary), (tmp_path / "t", None), cut=False)
    assert with_text.spell(0, ids).side.tokens == ("y", "a", "b", "</s>")
    assert without.spell(0, ids).side.tokens == ("x@@", "a", "b", "</s>")
    assert without.spell(0, ids).side.words.tolist() == [0, 0, 1, -1]


def test_a_data_set_that_changed_its_sentences_knows_no_words(tmp_path, vocabulary, ids):
    text = raw(tmp_path / "raw", "b a b b\n", vocabulary.dictionary)
    pairs = LanguagePairDataset(text, text.sizes, vocabulary.dictionary)
    found = SideReader(vocabulary, pairs, "src").spell(0, ids[[0, 1, 3]])
    assert (found.side.tokens, found.certain) == (("<unk>", "a", "</s>"), False)


def test_the_surface_is_found_behind_tags_and_in_the_only_part_of_a_data_set(tmp_path):
    dictionary = dictionary_of("c")
    (tmp_path / "text").write_text("x@@ c\nc\n", encoding="utf-8")
    text = IndexedRawTextDataset(str(tmp_path / "text"), dictionary)
    tagged = AppendTokenDataset(PrependTokenDataset(text, 3), 3)
    pairs = LanguagePairDataset(tagged, tagged.sizes, dictionary, text, text.sizes, dictionary)
    for dataset in (pairs, ConcatDataset([pairs])):
        assert surface(dataset, "src", 0) == surface(dataset, "tgt", 0) == ["x@@", "c"]
    assert surface(LanguagePairDataset(tagged, tagged.sizes, dictionary), "tgt", 0) is None
