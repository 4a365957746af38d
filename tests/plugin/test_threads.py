from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from fairseq_norm_plugin.process import enough_threads


@pytest.fixture(autouse=True)
def _threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(("tokens", "threads"), [(1, 1), (999, 1), (1000, 2), (10**6, 3)])
def test_threads_that_a_pass_has_work_for(tokens: int, threads: int) -> None:
    models = [torch.nn.Linear(1000, 500, bias=False), torch.nn.Linear(1000, 500, bias=False)]
    with enough_threads(models, tokens):
        assert torch.get_num_threads() == threads
    assert torch.get_num_threads() == 3


@pytest.mark.parametrize("policy", ["active", None])
def test_threads_that_spin_while_they_wait_need_more_work(monkeypatch: pytest.MonkeyPatch, policy: str | None) -> None:
    if policy:
        monkeypatch.setenv("OMP_WAIT_POLICY", policy)
    else:
        monkeypatch.delenv("OMP_WAIT_POLICY")
    for tokens, threads in ((19_999, 1), (20_000, 2)):
        with enough_threads([torch.nn.Linear(1000, 1000, bias=False)], tokens):
            assert torch.get_num_threads() == threads


def test_embeddings_are_no_work() -> None:
    """In a small model they are most parameters, and threads that wait for each other took 7 times as long."""
    model = torch.nn.Sequential(torch.nn.Embedding(100_000, 10), torch.nn.Linear(10, 10))
    with enough_threads([model], 10_000):
        assert torch.get_num_threads() == 1


def test_the_number_of_before_comes_back_after_an_error() -> None:
    with pytest.raises(ValueError, match="no"), enough_threads([torch.nn.Linear(1, 1)], 1):
        raise ValueError("no")
    assert torch.get_num_threads() == 3
