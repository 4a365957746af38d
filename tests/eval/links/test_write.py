import pytest

from alignment_eval.errors import InputError
from alignment_eval.links.sets import GoldSentence
from alignment_eval.links.write import format_scored_line
from tests.eval.links.samples import gold
from tests.facts import facts


def test_scored_lines():
    assert format_scored_line({(2, 0): 0.1, (0, 1): 1e-05, (0, 0): 1}, base=1) == "1-1:1.0 1-2:1e-05 3-1:0.1"
    with pytest.raises(InputError, match=facts("link 2-0 … nan … finite")):
        format_scored_line({(2, 0): float("nan")})


def test_possible_links_include_the_sure_ones():
    assert gold("0-0 1-2", "3-3").possible == {(0, 0), (1, 2), (3, 3)}
    assert gold("0-0", "0-0 1-1") == gold("0-0", "1-1")
    assert GoldSentence({(0, 0)}).sure == frozenset({(0, 0)})
