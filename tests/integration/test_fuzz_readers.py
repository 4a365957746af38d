"""Damaged files of every kind: a reader takes them or refuses them in one sentence, nothing else.

``FUZZ_CASES=20000 pytest tests/integration/test_fuzz_readers.py`` tries so many cases for each reader; the default is a
share of a few seconds.  Cases are drawn by number, so a failure can be repeated: ``FUZZ_FIRST`` is the first number.
"""

from __future__ import annotations

import copy
import json
import os
import random
import warnings
from dataclasses import replace

import numpy as np
import pytest

from alignment_eval.errors import InputError
from alignment_eval.extraction.corpus import read_direction
from alignment_eval.extraction.lexicon import Lexicon, Vocabulary
from alignment_eval.extraction.options import ExtractionOptions
from alignment_eval.figures.training_log import read_training_log
from alignment_eval.formats.detection import HYPOTHESIS_FORMATS, parse_gold_file, parse_hypothesis_file
from alignment_eval.formats.lexicon_file import read_lexicon, write_lexicon
from alignment_eval.records.manifest import Part, finished_run, json_hash, read_manifests
from alignment_eval.records.merge import merged_lines
from alignment_eval.records.store import Records
from alignment_eval.selection.profile import read_profile
from tests.eval.conftest import records, sentence
from tests.eval.records import shards
from tests.eval.selection.test_profile import FORWARD, REVERSE, together

CASES, FIRST = int(os.environ.get("FUZZ_CASES", "25")), int(os.environ.get("FUZZ_FIRST", "0"))

#: Values that a JSON file may hold in the place of others, and bytes that any file may.
VALUES = [
    *(None, True, False, 0, 1, -1, 2**31, 2**63, 2**64, 10**30, 0.5, -0.0, 1e308, "", "0", "x", "\x1b[2J", "\ud800"),
    *([], {}, [[]], [0], {"": 0}, {"model": None}, [None] * 3, "a\nb", "../../x", "/etc/passwd", "a" * 300),
]
BYTES = [
    *(b"", b"\x00", b"\xff", b"\n", b"\r\n", b"\xef\xbb\xbf", b" ", b"\t", b",", b":", b"-", b"p", b"NaN", b"1e999"),
    *(b"Infinity", b"9" * 40, b'"', b"{", b"}", b"[" * 300, b"null", b'"\\ud800"', b"0", b"A-1\t", b"|", b"\x1b[2J"),
]


def damaged_bytes(rng, data):
    """One to four places with a bit flipped, a piece cut out, repeated, or put in."""
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data) + 1)
        end = min(len(data), at + rng.choice((0, 1, 4, 40, 4000)))
        piece = rng.choice((data[at:end] * 2, b"", rng.choice(BYTES), rng.randbytes(3), bytes(data[:end][::-1][:9])))
        if rng.random() < 0.4 and at < len(data):
            end, piece = at + 1, bytes([data[at] ^ 1 << rng.randrange(8)])
        data = data[:at] + piece + data[end:]
    return data


def damaged_pages(rng, data):
    """A Parquet file whose data are damaged; pyarrow ends the process at some damaged descriptions of them."""
    description = int.from_bytes(data[-8:-4], "little") + 8
    return damaged_bytes(rng, data[:-description]) + data[-description:]


def places(value, path=()):
    """The paths of all values inside a structure of lists and dictionaries."""
    yield path
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield from places(value[key], (*path, key))


def damaged_values(rng, value, values=VALUES):
    """One or two values replaced, removed, or added."""
    value = copy.deepcopy(value)
    for _ in range(rng.randint(1, 2)):
        path = rng.choice([path for path in places(value) if path] or [()])
        if not path:
            return rng.choice(values)
        parent = value
        for key in path[:-1]:
            parent = parent[key]
        kind = rng.randrange(4)
        if kind == 0:
            del parent[path[-1]]
        elif kind == 1 and isinstance(parent, dict):
            parent[rng.choice(("x", "", *map(str, parent)))] = rng.choice(values)
        else:
            parent[path[-1]] = copy.deepcopy(rng.choice(values))
    return value


def damaged_json(rng, data):
    """JSON whose bytes or values are damaged; hashes of the content are right again."""
    if rng.random() < 0.3:
        return damaged_bytes(rng, data)
    found = damaged_values(rng, json.loads(data))
    if isinstance(found, dict) and "signature_hash" in found and rng.random() < 0.9:
        found.pop("hash", None)
        found["signature_hash"] = json_hash(found.get("signature"))
        found["hash"] = json_hash(found)
    return json.dumps(found, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")


MANIFEST, PART, LINES = "_shard-00000-of-00001.json", "part-00000-of-00001-00000.parquet", "a.parts"
EXTRACTION = ExtractionOptions("attn_n", 0, setting="awo")


def read_records(path):
    """A manifest or part of records, which are then read for alignments."""
    if path.name == PART:  # the hash is right, as an attacker would have it
        (manifest,) = read_manifests(path.parent, "records")
        replace(manifest, parts=(Part.of(path, 3),)).write(path.parent)
    for maps in Records(path.parent):
        read_direction(maps, EXTRACTION)


def read_parts(path):
    """A manifest or part of alignments, which are then merged."""
    if path.name != MANIFEST:
        (manifest,) = read_manifests(path.parent, "alignments")
        replace(manifest, parts=(Part.of(path, 3),)).write(path.parent)
    list(merged_lines(path.parent, finished_run(path.parent, "alignments")))


def read_log(path):
    read_training_log(path, "run", lambda message: None)


def alignment_reader(format_):
    def read(path):
        for parse in (
            lambda: parse_hypothesis_file(path, format_, True),
            lambda: parse_hypothesis_file(path, None, False),
            lambda: parse_gold_file(path),
        ):
            try:
                parse()
            except InputError as error:
                check_message(error)

    return read


LINKS = {
    "pharaoh": b"0-0 1-1 2-3\n\n3-1\n" * 3,
    "talp": b"0-0 1p1 2-3\n\n3p1\n" * 3,
    "scored": b"0-0:0.5 1-1:1e-05\n\n3-1:-2\n" * 3,
    "naacl": b"1 1 1 S\n1 2 2 P 0.5\n3 1 4\n" * 3,
    "fairseq": b"S-0\tx\nA-0\t0-0 1-1\nA-1\t\nA-2\t3-1\n",
}
LOG = [
    '2026-01-01 | INFO | valid | {"epoch": 1, "valid_loss": "3.5", "valid_num_updates": "8", "valid_aer": "0.5"}',
    '{"epoch": 2, "valid_loss": "3.25", "valid_num_updates": "16", "valid_aer": "0.25", "valid_aer_l1_n_awo": "0.3"}',
]


def files(directory):
    """Name -> a valid file, how it is damaged, and its reader."""
    run = records(directory / "run", [sentence(id_) for id_ in range(3)])
    parts = shards.write(directory / LINES, [[{0: "0-0", 1: "", 2: "1-1 2-3"}]], 3)
    words = Vocabulary.of([["a", "b"], ["a"]])
    lexicon = Lexicon(words, words, np.arange(4), np.ones(4, np.float32), 2)
    write_lexicon(directory / "lexicon", lexicon, "signature")
    (directory / "profile").write_text(together(FORWARD, REVERSE).to_json())
    (directory / "log").write_text("\n".join(LOG) + "\n")
    known = {
        "records manifest": (run / MANIFEST, damaged_json, read_records),
        "records part": (run / PART, damaged_pages, read_records),
        "alignments manifest": (parts / MANIFEST, damaged_json, read_parts),
        "alignments part": (parts / "part-00000-of-00001-00000.tsv", damaged_bytes, read_parts),
        "lexicon": (directory / "lexicon", damaged_pages, read_lexicon),
        "profile": (directory / "profile", damaged_json, read_profile),
        "log": (directory / "log", damaged_bytes, read_log),
    }
    for format_, content in LINKS.items():
        (directory / format_).write_bytes(content)
        known[format_] = (directory / format_, damaged_bytes, alignment_reader(format_))
    return known


def check_message(error):
    text = str(error)
    assert text.isprintable(), repr(text)
    assert len(text) < 1500, len(text)


READERS = [
    *("records manifest", "records part", "alignments manifest", "alignments part", "lexicon", "profile", "log"),
    *HYPOTHESIS_FORMATS,
]


@pytest.mark.parametrize("name", READERS)
def test_damaged_files(tmp_path, name):
    path, damaged, read = files(tmp_path)[name]
    data = path.read_bytes()
    beside = {other: other.read_bytes() for other in path.parent.iterdir() if other.is_file()}
    refused = 0
    for number in range(FIRST, FIRST + CASES):
        for other, content in beside.items():  # readers of parts write manifests
            other.write_bytes(content)
        path.write_bytes(damaged(random.Random(f"{name} {number}"), data))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                read(path)
            except InputError as error:
                refused += 1
                check_message(error)
            except BaseException as error:
                raise AssertionError(f"{name}, case {number}: {type(error).__name__}: {error}") from error
    print(f"{name}: {CASES} cases, {refused} refused")
