"""The models of both directions at the same time."""

from __future__ import annotations

import threading
import time

import pytest
import torch

from fairseq_norm_plugin.process import executors


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(5)
    yield 5
    torch.set_num_threads(before)


def test_they_run_at_once_with_a_share_of_the_processor():
    meeting = threading.Barrier(2, timeout=20)

    def job():
        meeting.wait()
        return threading.get_ident(), torch.get_num_threads()

    with executors(2, share=True) as both:
        found = [future.result() for future in [one.submit(job) for one in both]]
    assert len({ident for ident, _ in found} - {threading.get_ident()}) == 2
    assert [number for _, number in found] == [2, 2]
    assert torch.get_num_threads() == 5


@pytest.mark.parametrize("share", [True, False])
def test_here_without_threads_or_a_share(share):
    torch.set_num_threads(1 if share else 5)
    with executors(2, share=share) as both:
        found = [one.submit(threading.get_ident).result() for one in both]
    assert found == [threading.get_ident()] * 2


@pytest.mark.parametrize("share", [True, False])
def test_an_error_of_a_job_is_raised(share):
    with pytest.raises(ZeroDivisionError), executors(1, share) as (one,):
        one.submit(lambda: 1 / 0).result()


def test_jobs_that_did_not_begin_are_dropped():
    done = []
    with executors(1, share=True) as (one,):
        for number in range(50):
            one.submit(lambda n=number: (time.sleep(0.05), done.append(n)))
    assert done == list(range(len(done)))
    assert len(done) < 50
