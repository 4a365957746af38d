"""No line of the demo comes from the development corpora."""

import lzma
import re
import unicodedata

import pytest

from tests.demo import lines


def letters(line):
    """A line as its letters and digits, so that case, tokenisation and punctuation do not hide a copy."""
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFC", line).lower())


@pytest.mark.shared
@pytest.mark.slow
@pytest.mark.parametrize("language", ["de", "en"])
def test_no_line_comes_from_the_corpora(shared, language):
    ours = set(map(letters, lines(language)))
    files = [*shared.glob(f"data/gold/*/*.{language}"), *shared.glob(f"data/train/*.{language}*")]
    read = 0
    for path in files:
        with (lzma.open if path.suffix == ".xz" else open)(path, "rt", encoding="utf-8") as corpus:
            for line in corpus:
                read += 1
                assert letters(line) not in ours, f"{path}: {line}"
    assert read >= 292_680 + 1_000 + 1_000 + 508 + 150  # every corpus was there and was read
