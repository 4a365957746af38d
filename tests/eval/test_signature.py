import pytest

from alignment_eval.errors import InputError
from alignment_eval.signature import signature, version


def test_fields_in_order_and_version():
    text = signature(metric="aer", gold_base=1, swap=False, possible=True, head=None, threshold=0.25)
    expected = f"metric:aer|gold_base:1|swap:no|possible:yes|head:none|threshold:0.25|version:align-eval-{version()}"
    assert text == expected


def test_separator_in_a_value():
    with pytest.raises(InputError, match=r"signature field 'rule' is 'a\|b': expected a value without '\|'"):
        signature(rule="a|b")
