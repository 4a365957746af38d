"""The background thread: nothing lost, nothing unsaid, no hanging end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from functools import partial

import pytest

from fairseq_norm_plugin.output import writer_thread as background
from fairseq_norm_plugin.output.writer_thread import BackgroundThread


def test_jobs_are_done_in_order_in_another_thread():
    done = []
    thread = BackgroundThread(2)
    for i in range(50):
        thread.put(lambda i=i: done.append((i, threading.current_thread() is threading.main_thread())))
    thread.finish()
    assert done == [(i, False) for i in range(50)]


def test_so_many_jobs_wait_and_no_more():
    go, begun = threading.Event(), []
    thread = BackgroundThread(2)
    for i in range(2):
        thread.put(lambda i=i: (begun.append(i), go.wait()))
    third = threading.Thread(target=thread.put, args=(partial(begun.append, 2),))
    third.start()
    third.join(0.2)
    assert third.is_alive()
    assert begun == [0]
    go.set()
    third.join()
    thread.finish()
    assert begun == [0, 1, 2]


def fail():
    raise OSError("no space")


def test_an_error_is_raised_by_every_later_call():
    thread = BackgroundThread(3)
    failed = threading.Event()
    thread.put(lambda: (failed.set(), fail()))
    failed.wait()
    time.sleep(0.1)
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            thread.put(lambda: None)
    for _ in range(2):
        with pytest.raises(OSError, match="no space"):
            thread.finish()
    thread.abandon()


def test_the_last_error_is_raised_at_the_end():
    thread = BackgroundThread(3)
    thread.put(fail)
    with pytest.raises(OSError, match="no space"):
        thread.finish()


def test_what_is_abandoned_is_not_begun():
    go, done = threading.Event(), []
    thread = BackgroundThread(3)
    thread.put(go.wait)
    thread.put(partial(done.append, 1))
    threading.Timer(0.1, go.set).start()
    thread.abandon()
    assert done == []
    thread.abandon()


PROGRAM = """
import atexit, runpy, signal, sys, time

signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell runs in the background
thread = runpy.run_path({file!r})["BackgroundThread"](2)
atexit.register(lambda: (thread.abandon(), print("tidied up")))
for i in range(4):
    thread.put(lambda i=i: (time.sleep(0.3), print("done", i, flush=True)))
{end}
"""


@pytest.mark.parametrize(
    "end", ["raise RuntimeError('main')", "sys.exit(1)", "thread.put(lambda: time.sleep(0.1)); 1 / 0"]
)
def test_a_program_that_ends_badly_ends(end):
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(file=background.__file__, end=end)],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "tidied up"


def test_an_interrupted_program_ends():
    words = [
        sys.executable,
        "-c",
        PROGRAM.format(file=background.__file__, end="[thread.put(lambda: time.sleep(1)) for _ in range(99)]"),
    ]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "done 0\n"
        child.send_signal(signal.SIGINT)
        said, errors = child.communicate(timeout=60)
    assert "KeyboardInterrupt\n" in errors  # the interpreter may say more while it shuts down
    assert said.splitlines()[-1] == "tidied up"
