"""Freed blocks of megabytes stay in the process, also those of other threads; oneDNN keeps few programs."""

import ctypes
import os
import platform
import subprocess
import sys

import pytest

from fairseq_norm_plugin.aligning.memory import keep_few_programs, keep_freed_memory

PROGRAM = """
import resource, sys, threading
from fairseq_norm_plugin.aligning.memory import keep_freed_memory

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def work():
    for _ in range(3):
        blocks = [bytearray(4_000_000) for _ in range(4)]
    global before
    before = faults()
    del blocks
    for _ in range(50):
        blocks = [bytearray(4_000_000) for _ in range(4)]
        del blocks

if sys.argv[1] == "keep":
    assert keep_freed_memory()
thread = threading.Thread(target=work)
thread.start()
thread.join()
print(faults() - before)
"""


def faults(how):
    command = [sys.executable, "-c", PROGRAM, how]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}  # make test sets some
    return int(subprocess.run(command, check=True, capture_output=True, text=True, env=plain).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the C library is not glibc")
def test_blocks_are_not_faulted_in_again():
    assert faults("keep") < 0.1 * faults("leave")


def test_elsewhere_nothing_is_done(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert keep_freed_memory() is False


def test_a_c_library_without_these_settings(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: object())
    assert keep_freed_memory() is False


PRODUCTS = """
import resource, sys, torch
from fairseq_norm_plugin.aligning.memory import keep_few_programs

if sys.argv[1] == "few":
    keep_few_programs()
weight = torch.zeros(512, 256, dtype=torch.bfloat16)

def peak(sizes):
    for rows in sizes:
        torch.nn.functional.linear(torch.zeros(rows, 256, dtype=torch.bfloat16), weight)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

print(-peak([500]) + peak(range(1, 300)))
"""


def grown(how):
    """By how many KiB the process has grown after products of 300 sizes."""
    command = [sys.executable, "-c", PRODUCTS, how]
    plain = {name: value for name, value in os.environ.items() if not name.endswith("CACHE_CAPACITY")}
    return int(subprocess.run(command, check=True, capture_output=True, text=True, env=plain).stdout)


def test_few_programs_take_little_memory():
    many = grown("many")
    if many < 50_000:
        pytest.skip("on this processor torch's products keep no programs")
    assert grown("few") < 0.3 * many


def test_a_stated_number_of_programs_stays(monkeypatch):
    monkeypatch.setenv("LRU_CACHE_CAPACITY", "77")
    monkeypatch.setenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "")
    monkeypatch.delenv("ONEDNN_PRIMITIVE_CACHE_CAPACITY")
    keep_few_programs()
    assert (os.environ["LRU_CACHE_CAPACITY"], os.environ["ONEDNN_PRIMITIVE_CACHE_CAPACITY"]) == ("77", "8")
