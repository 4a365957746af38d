"""Damaged files of every kind: a reader takes them or refuses them in one sentence, nothing else.

``pytest --hypothesis-profile=thorough`` tries many.  Links as text are in tests/eval/links/test_formats.py.
"""

import copy
import json
import warnings
from argparse import Namespace
from functools import reduce
from operator import getitem

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import fairseq_norm_plugin
from alignment_eval.commands.curve import read_training_log
from alignment_eval.errors import AlignmentWarning, InputError
from alignment_eval.extraction.extract import read_word_map
from alignment_eval.extraction.lexical_table import LexicalTable, WordCounts, read_lexical_table, write_lexical_table
from alignment_eval.extraction.method import ExtractionOptions
from alignment_eval.parts import read_alignments
from alignment_eval.profiles.profile import read_profile
from alignment_eval.reading import TextFile
from alignment_eval.records import Records
from alignment_eval.transfer.label_files import parse_conll
from fairseq_norm_plugin.model import load as loading
from tests.demo import DEMO
from tests.eval import shards
from tests.eval.conftest import records, sentence
from tests.eval.profiles.test_profile import FORMED, REVERSE

#: Draws the damage; the file of one case is overwritten by that of the next.
CASES = given(st.randoms(use_true_random=True))

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
    """A value inside replaced, removed, or added, or the whole replaced."""
    value = copy.deepcopy(value)
    *parents, key = rng.choice([path for path in places(value) if path] or [(None,)])
    if key is None:
        return rng.choice(values)
    parent = reduce(getitem, parents, value)
    kind = rng.randrange(4)
    if kind == 0:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[rng.choice(("x", "", *map(str, parent)))] = rng.choice(values)
    else:
        parent[key] = copy.deepcopy(rng.choice(values))
    return value


def damaged_json(rng, data):
    """JSON whose bytes or values are damaged."""
    if rng.random() < 0.3:
        return damaged_bytes(rng, data)
    value = damaged_values(rng, json.loads(data))
    return json.dumps(value, ensure_ascii=rng.random() < 0.5).encode(errors="surrogatepass")


PART = "part-00000-of-00001-00000.parquet"


def read_manifest(path):
    """The manifest of a part of records, which is damaged by itself, in a file of its own."""
    part = path.parent / "run" / PART
    table = pq.read_table(part)
    pq.write_table(table.replace_schema_metadata({b"alignment_eval": path.read_bytes()}), part, use_dictionary=False)
    read_records(part)


def read_records(part):
    """A part of records, which are then read for alignments."""
    for maps in Records(part.parent):
        read_word_map(maps, ExtractionOptions("attn_n", "0", setting="awo"))


LOG = [
    '2026-01-01 | INFO | valid | {"epoch": 1, "valid_loss": "3.5", "valid_num_updates": "8", "valid_aer": "0.5"}',
    '{"epoch": 2, "valid_loss": "3.25", "valid_num_updates": "16", "valid_aer": "0.25", "valid_aer_l1_n_awo": "0.3"}',
]


def files(directory):
    """Name -> a valid file, how it is damaged, and its reader."""
    run = records(directory / "run", [sentence(id_) for id_ in range(3)])
    parts = shards.write(directory / "links", [[{0: "0-0", 1: "", 2: "1-1 2-3"}]], 3)
    (directory / "manifest").write_bytes(pq.read_schema(run / PART).metadata[b"alignment_eval"])
    words = WordCounts.of([["a", "b"], ["a"]])
    lexical_table = LexicalTable(words, words, np.arange(4), np.ones(4, np.float32), 2)
    write_lexical_table(directory / "lexical_table", lexical_table, "signature")
    (directory / "profile").write_text(FORMED.with_reverse(REVERSE).to_json())
    (directory / "log").write_text("\n".join(LOG) + "\n")
    (directory / "labels").write_text("In\tO\nUnter-\tB-LOC\ntirol\tI-LOC\n\nAnna\tB-PER\n")
    return {
        "manifest": (directory / "manifest", damaged_json, read_manifest),
        "records": (run / PART, damaged_pages, read_records),
        "alignments": (parts / PART, damaged_pages, lambda part: list(read_alignments(part.parent)[1])),
        "lexical_table": (directory / "lexical_table", damaged_pages, read_lexical_table),
        "profile": (directory / "profile", damaged_json, read_profile),
        "log": (directory / "log", damaged_bytes, lambda path: read_training_log(path, "run")),
        "labels": (directory / "labels", damaged_bytes, lambda path: list(parse_conll(TextFile(path).lines(), "x"))),
    }


def read_or_refused(read):
    """The only exception is an InputError of one printable sentence."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", AlignmentWarning)
        try:
            read()
        except BuiltError:
            pass
        except InputError as error:
            text = str(error)
            assert text.isprintable(), repr(text)
            assert len(text) < 1500, len(text)


@pytest.mark.parametrize("name", ["manifest", "records", "alignments", "lexical_table", "profile", "log", "labels"])
def test_damaged_files(tmp_path, name):
    path, damaged, read = files(tmp_path)[name]
    data = path.read_bytes()

    @CASES
    def check(rng):
        path.write_bytes(damaged(rng, data))
        read_or_refused(lambda: read(path))

    check()


# -- files of a model -------------------------------------------------------------------------------------------------

WORDS = 12
#: Values that a checkpoint may hold in the place of others.
CHECKPOINT_VALUES = [
    *(*VALUES, "${model.encoder_layers}", "${x}", "${oc.env:HOME}", "???", "[1]", "None", "True", (), (1, "a")),
    *(float("nan"), float("inf"), np.float64(2), Namespace(), Namespace(_name="transformer"), 10**7, "transformer"),
    *(torch.zeros(0), torch.zeros(()), torch.ones(3, dtype=torch.int64), torch.zeros(1, 2, 3), {1: 2}),
    *("moses", "fastbpe", {"_name": "gpt2"}, {"_name": "fastbpe", "bpe_codes": "/x/y.codes"}),
]


class BuiltError(OSError):
    """The model would be built now, with the sizes that the checkpoint asks for."""


def build_nothing(*_):
    raise BuiltError


@pytest.fixture(scope="module")
def demo():
    """The demo's checkpoint with parameters that are all 0 and have few words; its options in dictionaries."""
    state = torch.load(DEMO / "checkpoint.pt", weights_only=True)
    words = len(state["model"]["encoder.embed_tokens.weight"])
    shapes = {name: [WORDS + 4 if n == words else n for n in tensor.shape] for name, tensor in state["model"].items()}
    weights = {name: torch.zeros(1).expand(shape) for name, shape in shapes.items()}
    cfg = {name: section for name, section in state["cfg"].items() if name in ("task", "model", "bpe", "tokenizer")}
    cfg["model"] = vars(cfg["model"])
    return {**state, "model": weights, "cfg": cfg}


def damaged_checkpoint(rng, state):
    """The content of a checkpoint with a change in its whole or in a section."""
    state = {**state, "cfg": {**state["cfg"]}}
    place = rng.choice(("", "model", "cfg", "task", "arch", "bpe"))
    if place == "":
        state = damaged_values(rng, state, CHECKPOINT_VALUES)
    elif place in ("model", "cfg"):
        state[place] = damaged_values(rng, state[place], CHECKPOINT_VALUES)
    else:
        name = "model" if place == "arch" else place
        state["cfg"][name] = damaged_values(rng, state["cfg"][name], CHECKPOINT_VALUES)
    cfg = state.get("cfg") if isinstance(state, dict) else None
    if isinstance(cfg, dict) and isinstance(cfg.get("model"), dict) and all(map(str.isidentifier, cfg["model"])):
        cfg["model"] = Namespace(**cfg["model"])
        if rng.random() < 0.1:  # as fairseq before version 1
            state["args"], state["cfg"] = cfg["model"], None
    return state


def test_damaged_checkpoints(tmp_path, demo, monkeypatch):
    """Up to the place where the model is built; no sizes are checked before."""
    for name in ("dict.de.txt", "dict.en.txt"):
        (tmp_path / name).write_bytes(b"".join((DEMO / name).read_bytes().splitlines(keepends=True)[:WORDS]))
    monkeypatch.setattr(loading, "build_model", build_nothing)

    @settings(max_examples=settings().max_examples // 4)
    @CASES
    def check(rng):
        torch.save(damaged_checkpoint(rng, demo), tmp_path / "c.pt")
        read_or_refused(
            lambda: fairseq_norm_plugin.load(tmp_path / "c.pt", tmp_path, "de", "en", bpe=rng.choice((None, "none")))
        )

    check()
