import torch
from fairseq import utils
from hypothesis import given
from hypothesis import strategies as st

from fairseq_norm_plugin.hooks.printing import hard_alignment, soft_alignment

EOS, PAD = 2, 1


@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 10**6))
def test_awo_is_what_fairseq_prints(source_length, target_length, seed):
    generator = torch.Generator().manual_seed(seed)
    source = torch.cat([torch.arange(4, 4 + source_length), torch.tensor([EOS])])
    target = torch.cat([torch.arange(4, 4 + target_length), torch.tensor([EOS])])
    map_ = torch.rand(target_length + 1, source_length + 1, generator=generator)
    expected = utils.extract_hard_alignment(map_.clone(), source, target, PAD, EOS)
    assert hard_alignment(map_, source.ne(EOS), target.ne(EOS), "awo") == expected


def test_awi_takes_the_row_below_and_has_none_for_the_end():
    source, target = torch.tensor([4, 5, EOS]), torch.tensor([6, 7, EOS])
    map_ = torch.tensor([[0.0, 1.0, 9.0], [1.0, 0.0, 9.0], [0.0, 1.0, 9.0]])
    assert hard_alignment(map_, source.ne(EOS), target.ne(EOS), "awo") == [(1, 0), (0, 1)]
    assert hard_alignment(map_, source.ne(EOS), target.ne(EOS), "awi") == [(0, 0), (1, 1)]
    assert soft_alignment(map_[:, :2], "awo") == [
        ["0.000000", "1.000000"],
        ["1.000000", "0.000000"],
        ["0.000000", "1.000000"],
    ]
    assert soft_alignment(map_[:, :2], "awi") == [["1.000000", "0.000000"], ["0.000000", "1.000000"]]


def test_ties_go_to_the_first_and_an_empty_source_has_no_links():
    source, target = torch.tensor([4, 5, EOS]), torch.tensor([6, EOS])
    assert hard_alignment(torch.ones(2, 3), source.ne(EOS), target.ne(EOS), "awo") == [(0, 0)]
    assert hard_alignment(torch.ones(2, 1), torch.tensor([False]), target.ne(EOS), "awo") == []
