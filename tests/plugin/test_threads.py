from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch

from fairseq_norm_plugin.process import enough_threads, executors


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


def test_two_models_run_at_once_with_a_share_of_the_threads() -> None:
    meeting = threading.Barrier(2, timeout=20)

    def job() -> tuple[int, int]:
        meeting.wait()
        return threading.get_ident(), torch.get_num_threads()

    torch.set_num_threads(5)
    with executors(2, share=True) as both:
        results = [future.result() for future in [executor.submit(job) for executor in both]]
    assert len({ident for ident, _ in results} - {threading.get_ident()}) == 2
    assert [number for _, number in results] == [2, 2]
    assert torch.get_num_threads() == 5


@pytest.mark.parametrize("share", [True, False])
def test_here_without_threads_or_a_share(share: bool) -> None:
    torch.set_num_threads(1 if share else 5)
    with executors(2, share=share) as both:
        assert [executor.submit(threading.get_ident).result() for executor in both] == [threading.get_ident()] * 2
