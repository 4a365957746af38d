"""A run that writes its maps: what of a batch goes into records and word alignments."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from alignment_eval.errors import InputError, UsageError
from alignment_eval.extraction.method import AlignmentMethod
from alignment_eval.profiles.chosen import ChosenMethod
from alignment_eval.records import Records
from fairseq_norm_plugin.capture.recorder import MAPS_KEY
from fairseq_norm_plugin.hooks.generator import NormOptions
from fairseq_norm_plugin.hooks.session import Plan, RecordingSession
from fairseq_norm_plugin.text.tokens import side_readers
from tests.facts import facts, says
from tests.plugin.dictionaries import dictionary_of, vocabulary_of
from tests.plugin.hooks.output import OPTIONS, QUANTITIES, names

SIGNATURE = {"generation": {"nbest": 2, "score_reference": False, "sampling": False}}


def session_of(directory, size=1, signature=SIGNATURE, batching=None, skipped=(), **changes):
    known = vocabulary_of("a@@", "b", "c", mark="auto")
    readers = side_readers(None, size, (known, known), (None, None), cut=False)
    outputs = {"norm_records": directory / "r", "norm_alignments": directory / "a", "norm_part_sentences": 10}
    cfg = SimpleNamespace(**{"norm_records_resume": False, "norm_records_overwrite": False, **outputs, **changes})
    options = NormOptions(OPTIONS, ("attn_w", "attn_n"), (0,), 2, ChosenMethod(AlignmentMethod(OPTIONS)))
    batches = SimpleNamespace(dataset=range(size), frozen_batches=[[i] for i in range(size) if i not in skipped])
    plan = Plan(cfg, "test", batches, dict.fromkeys(skipped, "skipped: long"), batching or {})
    return RecordingSession(cfg, plan, readers, options, signature, models=1)


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
