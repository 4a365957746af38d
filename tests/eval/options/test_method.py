"""A lexical table of ``extract``."""

from alignment_eval.alignment import align_pairs
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions

TWO_WAY = ("--kind", "attn_n", "--heads", 1, "--setting", "awo", "--rule", "two-way=0.3")


def test_a_lexical_table(tmp_path, make_sentence, make_records, call):
    """Of the pairs of the corpus, in whatever order the records hold them."""
    texts = ["a b", "b a", "a a b", "c", "b c a", "c a b a", "a"]
    pairs = [make_sentence(k, source=f"{t} </s>", target=f"{t.upper()} </s>") for k, t in enumerate(texts)]
    pairs[3] = make_sentence(3, status="too long")
    directory = make_records(tmp_path / "run", [pairs[k] for k in (3, 6, 0, 1, 2, 4, 5)], shards=2)
    _, out, err = call("extract", directory, *TWO_WAY, "--table", "text")
    options = ExtractionOptions("attn_n", "1", setting="awo", rule="two-way=0.3")
    method = AlignmentMethod(options, sharpened=True, table_pairs=7)
    found = align_pairs([(read_word_map(pair, options), None) for pair in pairs], method)
    assert out.splitlines() == [alignment.to_pharaoh() for alignment in found]
    assert out != call("extract", directory, *TWO_WAY)[1]
    assert "|table:text|table_pairs:20000|" in err
    assert "warning: 1 of 7 sentences cannot be aligned" in err
    status, _, err = call("extract", directory, *TWO_WAY, "--table", directory)
    assert (status, f"{directory}: " in err) == (1, True)
