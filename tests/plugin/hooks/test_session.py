"""A run that writes its maps: what of a batch goes into records and word alignments; parts, begun, resumed, killed."""

import re
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from alignment_eval import parts as parts_module
from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions
from alignment_eval.maps.sentence import SentenceMaps, SentenceSide
from alignment_eval.parts import RunInfo, parts_directory
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.records import Records, arrow_schema, to_table
from fairseq_norm_plugin.capture.recorder import MAPS_KEY
from fairseq_norm_plugin.hooks.datasets import BinarisedText
from fairseq_norm_plugin.hooks.generator import NormOptions
from fairseq_norm_plugin.hooks.session import AlignmentParts, Plan, RecordingSession, SentenceParts, ids_in
from tests.facts import facts, says
from tests.plugin.dictionaries import dictionary_of, vocabulary_of

QUANTITIES = ("head_attn_w", "transformed_norm", "layer_attn_n")
OPTIONS = ExtractionOptions("attn_n", "0", setting="awo")
PART = "part-00000-of-00001-{:05d}.parquet"


def sentence(id_, rank=0, status="ok"):
    side = SentenceSide(("a", "b", "</s>"), np.array([0, 1, -1], dtype=np.int32))
    maps = np.eye(3, dtype=np.float32)
    arrays = {
        "head_attn_w": np.stack([[maps, maps]]),
        "transformed_norm": np.ones((1, 2, 3), dtype=np.float32),
        "layer_attn_n": maps[None],
    }
    if status != "ok":
        side, arrays = SentenceSide((), np.empty(0, dtype=np.int32)), {}
    return SentenceMaps(id_, side, side, (0,), rank=rank, status=status, arrays=arrays)


def record_parts(directory, resume=False, overwrite=False, shard=0, shards=1, size=3, **signature):
    info = RunInfo("records", signature, size, shard, shards, ("attn_w", "attn_n"), (0,), 2, 1)
    schema = arrow_schema(info, QUANTITIES)
    return SentenceParts(directory, info, schema, partial(to_table, schema=schema), resume, overwrite)


def alignment_parts(file, resume=False, overwrite=False, shard=0, shards=1, size=3, **signature):
    run = RunInfo("alignments", {"extraction": {}, **signature}, size, shard, shards)
    return AlignmentParts(file, run, ChosenMethod(AlignmentMethod(OPTIONS)), resume, overwrite)


def write(parts, *ids, status="ok"):
    parts.write([sentence(id_, status=status) for id_ in ids])
    return parts


def names(directory):
    return sorted(path.name for path in directory.iterdir())


# -- from batches to output


SIGNATURE = {"generation": {"nbest": 2, "score_reference": False, "sampling": False}}


def session_of(directory, size=1, signature=SIGNATURE, batching=None, skipped=(), **changes):
    known = vocabulary_of("a@@", "b", "c", mark="auto")
    outputs = {"norm_records": directory / "r", "norm_alignments": directory / "a", "norm_part_sentences": 10}
    cfg = SimpleNamespace(**{"norm_records_resume": False, "norm_records_overwrite": False, **outputs, **changes})
    options = NormOptions(OPTIONS, ("attn_w", "attn_n"), (0,), 2, ChosenMethod(AlignmentMethod(OPTIONS)))
    batches = SimpleNamespace(dataset=range(size), frozen_batches=[[i] for i in range(size) if i not in skipped])
    plan = Plan(cfg, "test", batches, dict.fromkeys(skipped, "skipped: long"), batching or {})
    return RecordingSession(cfg, plan, BinarisedText(None, size, (known, known)), options, signature, models=1)


def ids_of(text, pads=0):
    dictionary = dictionary_of("a@@", "b", "c")
    return torch.tensor([dictionary.pad()] * pads + [dictionary.index(t) for t in text.split()] + [dictionary.eos()])


def hypothesis(text, source=4):
    ids = ids_of(text)
    maps = np.eye(len(ids), source, dtype=np.float32)
    arrays = dict(zip(QUANTITIES, (np.stack([[maps, maps]]), np.ones((1, 2, source), np.float32), maps[None])))
    return {"tokens": ids, "score": torch.tensor(-0.5), MAPS_KEY: arrays}


def batch(id_, text, pads=0):
    return {"id": torch.tensor([id_]), "net_input": {"src_tokens": ids_of(text, pads)[None]}}


def test_a_batch_becomes_records_and_links(tmp_path, capsys):
    session = session_of(tmp_path, size=3, skipped=[2])
    assert session.recorded.quantities == QUANTITIES
    assert session.recorded.nbest == 2
    session.write(batch(1, "a@@ b c", pads=2), [[hypothesis("c b"), hypothesis("c"), {"tokens": ids_of("b")}]])
    assert not session.finished
    assert not list((tmp_path / "r").glob("[!.]*"))
    for id_ in (1, 2, 7):  # again, skipped, not there
        with pytest.raises(InputError, match=facts(f"sentence {id_} is a duplicate or … shard")):
            session.write(batch(id_, "b"), [[hypothesis("b")]])
    assert "shard 0 of 1" not in capsys.readouterr().err
    session.write(batch(0, "b c c"), [[hypothesis("a@@ b")]])
    assert session.finished
    assert re.fullmatch(r"test: shard 0 of 1: 2 sentences in [\d.]+ s, [\d.]+ sentences/s\n", capsys.readouterr().err)
    records = {(s.id, s.rank): s for s in Records(tmp_path / "r")}
    assert sorted(records) == [(0, 0), (1, 0), (1, 1), (2, 0)]
    assert records[2, 0].status == "skipped: long"
    first = records[1, 0]
    assert (first.source.tokens, first.source.words.tolist()) == (("a@@", "b", "c", "</s>"), [0, 0, 1, -1])
    assert (first.target.tokens, first.target.words.tolist()) == (("c", "b", "</s>"), [0, 1, -1])
    assert (first.score, first.layers) == (-0.5, (0,))
    assert (tmp_path / "a").read_text() == "0-0\n0-0 0-1\n\n"
    assert names(tmp_path) == ["a", "a.signature.json", "r"]


def test_the_first_shard_records_the_skipped_sentences_of_all(tmp_path):
    for shard in (0, 1):
        batching = {"shard_id": shard, "num_shards": 2}
        session_of(tmp_path, size=3, batching=batching, skipped=[2]).write(batch(shard, "b"), [[hypothesis("b", 2)]])
    assert sorted(sentence.id for sentence in Records(tmp_path / "r")) == [0, 1, 2]


def test_what_the_model_itself_does_not_know_is_a_word_of_its_own(tmp_path, caplog):
    session_of(tmp_path).write(batch(0, "c c c"), [[hypothesis("? c")]])
    (sentence,) = Records(tmp_path / "r")
    assert (sentence.status, (tmp_path / "a").read_text()) == ("ok", "0-0 1-1\n")
    assert says(caplog.text, "unknown to the model so far: 1 of 3 target subwords (33.3 %)")


def test_a_run_that_samples_is_not_resumed(tmp_path):
    sampling = {"generation": {**SIGNATURE["generation"], "sampling": True}}
    session_of(tmp_path, 2, sampling, norm_part_sentences=1).write(batch(0, "b"), [[hypothesis("b", source=2)]])
    with pytest.raises(UsageError, match=facts("--norm-records-resume … with --sampling")):
        session_of(tmp_path, 2, sampling, norm_records_resume=True)


@pytest.mark.parametrize(("name", "value"), [("score", np.nan), *((name, -np.inf) for name in QUANTITIES)])
def test_a_value_that_is_not_finite_stops_the_run(tmp_path, name, value):
    session = session_of(tmp_path, size=2)
    session.write(batch(1, "b c c"), [[hypothesis("b")]])
    spoiled = hypothesis("b")
    if name == "score":
        spoiled["score"] = torch.tensor(value)
    else:
        spoiled[MAPS_KEY][name].flat[-1] = value
    with pytest.raises(InputError, match=facts(f"sentence 0: {name} … NaN or infinite values")):
        session.write(batch(0, "b c c"), [[hypothesis("c"), spoiled]])
    assert not session.finished
    assert not list(tmp_path.rglob("part-*"))


# -- parts


@pytest.mark.parametrize("make", [record_parts, alignment_parts], ids=["records", "alignments"])
def test_a_begun_shard_is_refused_continued_or_replaced(tmp_path, make):
    place, content = tmp_path / "x", "records" if make is record_parts else "alignments"
    directory = place if make is record_parts else parts_directory(place)

    def written(shard=0):
        return sorted(ids_in(directory, content, shard, 2))

    writer = make(place, shards=2, a=1)
    write(writer, 2).commit()
    write(writer, 1).abandon()
    assert (written(), written(1)) == ([2], [])
    with pytest.raises(InputError, match=facts("holds parts … --norm-records-resume … --norm-records-overwrite")):
        make(place, shards=2, a=1)
    for options in ({}, {"resume": True}, {"overwrite": True}):
        with pytest.raises(InputError, match=facts("of another run (different: a, b)")):
            make(place, shards=2, a=2, b=3, **options)
    writer = make(place, shards=2, a=1, resume=True)
    write(writer, 1, 2)
    write(writer, 0, status="skipped").finish()
    assert written() == [0, 1, 2]
    before = {path: path.stat().st_mtime_ns for path in directory.iterdir()}
    parts = write(make(place, shards=2, a=1, resume=True), 1)
    assert parts.written.all()
    parts.finish()
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    writer = make(place, shards=2, a=1, overwrite=True)
    assert {path: path.stat().st_mtime_ns for path in directory.iterdir()} == before
    write(writer, 0).finish()
    assert written() == [0]
    assert names(directory) == ["part-00000-of-00002-00000.parquet"]
    write(make(place, shards=2, shard=1, a=1), 1).finish()  # the other shard is not this one's to refuse or replace
    write(make(place, shards=2, a=1, overwrite=True), 2).finish()
    assert (written(), written(1)) == ([2], [1])


def test_a_full_disk_fails_the_run_and_leaves_whole_parts(tmp_path, monkeypatch):
    """Rows are written one by one, and the third is one too many."""
    written = []

    class Writer(pq.ParquetWriter):
        def write_table(self, table, *args, **kwargs):
            written.extend(table["id"].to_pylist())
            if len(written) > 2:
                raise OSError("No space left on device")
            super().write_table(table, *args, **kwargs)

    monkeypatch.setattr(pq, "ParquetWriter", Writer)
    monkeypatch.setattr(parts_module, "_BUFFER_BYTES", 0)
    writer = record_parts(tmp_path, size=9)
    write(writer, 0).commit()
    write(writer, 1)
    for again in (lambda: write(writer, 2), writer.commit, writer.finish):
        with pytest.raises(InputError, match=r"cannot write the file \(No space left"):
            again()
    writer.abandon()
    assert names(tmp_path) == [PART.format(0)]
    assert ids_in(tmp_path, "records", 0, 1).tolist() == [0]


@pytest.mark.parametrize("options", [{"resume": True}, {"overwrite": True}], ids=str)
def test_what_a_killed_process_leaves_is_removed(tmp_path, options):
    """A whole part and an unfinished one; tests/integration/test_records_runs.py kills a process."""
    write(record_parts(tmp_path, size=4), 0, 1).commit()
    (tmp_path / f".{PART.format(1)}.x1.tmp").write_text("unfinished")
    with pytest.raises(InputError, match=facts("sentences 2, 3 are missing")):
        Records(tmp_path)
    (tmp_path / f".{PART.format(0)[:-8]}.tmp").write_text("of somebody else")
    write(record_parts(tmp_path, size=4, **options), 0, 1, 2, 3).finish()
    assert [sentence.id for sentence in Records(tmp_path)] == [0, 1, 2, 3]
    parts = [PART.format(0), PART.format(1)] if "resume" in options else [PART.format(0)]
    assert names(tmp_path) == [f".{PART.format(0)[:-8]}.tmp", *parts]


def test_two_processes_of_one_shard_lose_nothing(tmp_path):
    first, second = record_parts(tmp_path, size=2), record_parts(tmp_path, size=2)
    write(first, 0, 1).finish()
    write(second, 1)
    with pytest.raises(InputError, match=facts(f"{PART.format(0)}: another process")):
        second.finish()
    second.abandon()
    assert [sentence.id for sentence in Records(tmp_path)] == [0, 1]
    assert names(tmp_path) == [PART.format(0)]


# -- the alignments file of a run of one shard


def finish(file, size=2, **options):
    write(alignment_parts(file, size=size, **options), *range(size)).finish()


def test_a_file_is_only_replaced_with_overwrite(tmp_path):
    (tmp_path / "a").write_text("mine")
    for resume in (False, True):
        with pytest.raises(InputError, match=facts("a: already exists … --norm-records-overwrite")):
            alignment_parts(tmp_path / "a", resume=resume)
    assert names(tmp_path) == ["a"]
    writer = alignment_parts(tmp_path / "a", overwrite=True, size=1)
    write(writer, 0)
    assert (tmp_path / "a").read_text() == "mine"
    writer.finish()
    assert (tmp_path / "a").read_text() == "0-0 1-1\n"
    finish(tmp_path / "a", size=1, overwrite=True)
    assert names(tmp_path) == ["a", "a.signature.json"]


@pytest.mark.parametrize("there", [False, True])
def test_a_run_that_fails_while_joining_is_resumed(tmp_path, there):
    if there:
        finish(tmp_path / "a")
    (tmp_path / "a.signature.json").unlink(missing_ok=True)
    (tmp_path / "a.signature.json").mkdir()  # cannot be written
    with pytest.raises(InputError, match=r"a\.signature\.json"):
        finish(tmp_path / "a", overwrite=there)
    (tmp_path / "a.signature.json").rmdir()
    finish(tmp_path / "a", resume=True)
    assert (tmp_path / "a").read_text() == "0-0 1-1\n" * 2
    assert names(tmp_path) == ["a", "a.signature.json"]


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/null"])
def test_a_stream_is_no_file(path):
    with pytest.raises(InputError, match=facts(f"{path} … is not a regular file")):
        alignment_parts(Path(path))
