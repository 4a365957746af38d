from collections import Counter
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alignment_eval.commands.lexicon import bilingual_lexicon, phrase_pairs
from alignment_eval.errors import InputError

FILES = {"source": "der hund\nder katze\n", "target": "the dog\nthe cat\n", "links": "0-0 1-1\n0-0 1-0 1-1\n"}
COMMAND = ("lexicon", "--source", "source", "--target", "target")
EXPECTED = """\
source\ttarget\tcount\tp(t|s)\tp(s|t)\tdice
der\tthe\t2\t1.0000\t0.6667\t0.8000
hund\tdog\t1\t1.0000\t1.0000\t1.0000
katze\tcat\t1\t0.5000\t1.0000\t0.6667
katze\tthe\t1\t0.5000\t0.3333\t0.4000
"""
PAIRS = st.lists(
    st.tuples(
        st.lists(st.sampled_from("abc"), min_size=3, max_size=3),
        st.lists(st.sampled_from("xyz"), min_size=3, max_size=3),
        st.frozensets(st.tuples(st.integers(0, 2), st.integers(0, 2))),
    )
)


@given(PAIRS)
def test_figures_are_those_of_a_list_of_links(pairs):
    linked = [(source[i], target[j]) for source, target, links in pairs for i, j in links]
    sources, targets = (Counter(word) for word in zip(*linked)) if linked else (Counter(), Counter())
    entries = bilingual_lexicon(pairs)
    assert {(entry.source, entry.target): entry.links for entry in entries} == Counter(linked)
    assert [entry[:3] for entry in entries] == sorted(
        (entry[:3] for entry in entries), key=lambda row: (-row[2], *row[:2])
    )
    for entry in entries:
        s, t = sources[entry.source], targets[entry.target]
        assert (entry.p_target, entry.p_source) == (entry.links / s, entry.links / t)
        assert entry.dice == pytest.approx(float(Fraction(2 * entry.links, s + t)))


@given(PAIRS, st.integers(1, 3))
def test_phrases_are_all_runs_with_links_inside_and_none_to_the_outside(pairs, longest):
    def is_consistent(links, a, b, c, d):
        ends = [(a <= i < b, c <= j < d) for i, j in links]
        return (True, True) in ends and all(i == j for i, j in ends)

    for _, _, links in pairs:
        runs = [(a, b) for b in range(4) for a in range(b) if b - a <= longest]
        expected = {(one, other) for one in runs for other in runs if is_consistent(links, *one, *other)}
        found = list(phrase_pairs(links, (3, 3), longest))
        assert (len(found), set(found)) == (len(expected), expected)


def test_entries_of_several_words_in_lower_case():
    pairs = [(["Das", "Haus"], ["The", "house"], {(0, 0), (1, 1)})]
    pairs += [(["im", "Haus"], ["in", "the", "house"], {(0, 0), (0, 1), (1, 2)})] * 2
    entries = {entry[:2]: entry[2:] for entry in bilingual_lexicon(pairs, max_words=2, lowercase=True)}
    assert entries == {
        ("haus", "house"): (3, 1.0, 1.0, 1.0),
        ("im", "in the"): (2, 1.0, 1.0, 1.0),
        ("das", "the"): (1, 1.0, 1.0, 1.0),
        ("das haus", "the house"): (1, 1.0, 1.0, 1.0),
    }


def test_a_link_outside():
    with pytest.raises(InputError, match=r"link -1-0 .* 1 and 2 words"):
        bilingual_lexicon([(["a"], ["x", "y"], {(-1, 0)})])


def test_end_to_end(files, align_eval):
    done = align_eval(*COMMAND, "links", "-o", "out.tsv")
    assert (done.returncode, done.stdout, Path("out.tsv").read_text()) == (0, "", EXPECTED)
    assert "|min_count:1|entries:4|" in done.stderr
    files("other", "1-1 2-2\n1-1 1-2 2-2\n")
    words = (*COMMAND, "other", "--links-swap", "--links-base", "1", "--min-count", 2)
    assert align_eval(*words).stdout == "".join(EXPECTED.splitlines(True)[:2])
    done = align_eval(*COMMAND, "links", "--max-words", 2, "--lowercase")
    assert "\nder hund\tthe dog\t1\t" in done.stdout
    assert "|max_words:2|lowercase:yes|" in done.stderr
