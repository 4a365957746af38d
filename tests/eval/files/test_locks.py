"""One writer an output; the right to write ends with its owner."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from alignment_eval.errors import InputError
from alignment_eval.files import WriterLock, locks

HOLD = (
    "import sys, time; from pathlib import Path; from alignment_eval.files import WriterLock; "
    "lock = WriterLock(Path(sys.argv[1])); print('held', flush=True); time.sleep(60)"
)


def test_the_second_is_refused(tmp_path: Path) -> None:
    first = WriterLock(tmp_path / "a")
    with pytest.raises(InputError, match="a: another process is writing it"):
        WriterLock(tmp_path / "a")
    with WriterLock(tmp_path / "b"):
        pass
    first.release()
    first.release()
    with WriterLock(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_it_ends_with_a_killed_owner(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "a")], stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        with pytest.raises(InputError, match="another process"):
            WriterLock(tmp_path / "a")
        owner.kill()
        owner.wait()
    with WriterLock(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".a.align-eval-lock").symlink_to(tmp_path / "victim")
    with pytest.raises(InputError, match="a: cannot create the lock file"):
        WriterLock(tmp_path / "a")
    assert not (tmp_path / "victim").exists()


def test_without_locks_everyone_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    with WriterLock(tmp_path / "a"), WriterLock(tmp_path / "a"):
        pass
    assert list(tmp_path.iterdir()) == []
