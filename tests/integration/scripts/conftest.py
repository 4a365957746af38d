"""Scripts find quickly started programs."""

from __future__ import annotations

import pytest

from tests.integration.scripts import preparing


@pytest.fixture(scope="package", autouse=True)
def _programs(bin_directory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preparing, "PROGRAMS", bin_directory)
        yield
