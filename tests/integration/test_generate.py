"""fairseq-generate under the plugin: the same hypotheses and scores, the right maps, and what is refused."""

import logging

import numpy as np
import pytest

from alignment_eval import commands as cli
from alignment_eval.maps.sentence import KINDS
from alignment_eval.records import Records
from tests.facts import says

SCORE = "--score-reference"
HARD = ["--print-alignment", "hard"]
SKIP = "--skip-invalid-size-inputs-valid-test"
SHORTER = ["--gen-subset", "test5", "--max-source-positions", 60]  # sentence 3 has 84 tokens
NBEST = ["--beam", 3, "--nbest", 2]
EVERY_KIND = ["--norm-record-kinds", ",".join(KINDS)]


def records_of(directory):
    """The best hypothesis of each sentence, by its id."""
    return {sentence.id: sentence for sentence in Records(directory).best()}


@pytest.mark.parametrize(
    "options",
    [
        ["--beam", 4, "--nbest", 2, "--lenpen", 0.7],
        ["--beam", 3, "--nbest", 3, "--sampling", "--seed", 5],
        ["--beam", 2, "--prefix-size", 4],  # some targets are not longer
        [SCORE],
    ],
    ids=lambda options: "".join(map(str, options)),
)
def test_hypotheses_and_scores_are_bit_identical(stock, norm, tmp_path, capfd, options):
    nbest = options[options.index("--nbest") + 1] if "--nbest" in options else 1
    expected = stock(*options).lines()
    assert len(expected) == 12 * nbest * 3
    assert len({len(content.split()) for _, kind, content in expected if kind == "P"}) > 3  # of various lengths
    printed = HARD
    output = norm(*options, *printed)
    assert output.lines() == expected
    whole = sum(not links for _, _, links in output.lines("A"))
    assert (whole > 0) == ("--prefix-size" in options)
    assert says(capfd.readouterr().err, f"whole target of {whole} sentences") == (whole > 0)
    recorded = norm(*options, *printed, "--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a")
    assert recorded.lines() == expected
    sentences = list(Records(tmp_path / "r"))
    hypotheses = {(s.id, s.rank): " ".join(s.target.tokens[:-1]) for s in sentences}
    assert len(hypotheses) == len(sentences) == 12 * nbest
    texts = [(id_, content.split("\t")[1]) for id_, kind, content in expected if kind == "H"]
    assert [(id_, hypotheses[id_, i % nbest]) for i, (id_, _) in enumerate(texts)] == texts
    assert len((tmp_path / "a").read_text().splitlines()) == 12


def written(output):
    """What fairseq writes of sentences, in its order."""
    return [line for line in output.text.splitlines() if line[:2] in ("S-", "T-", "H-", "D-", "P-")]


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--max-tokens", 40],
        ["--gen-subset", "test3"],  # of 7 sentences, all of which fairseq loses
        [SCORE],
    ],
    ids=str,
)
def test_the_same_command_writes_the_same_and_then_what_fairseq_loses(
    run_generate, data, checkpoint, tmp_path, caplog, options
):
    caplog.set_level(logging.INFO)
    words, all_lost = [data, "--path", checkpoint, *options], "test3" in options
    size = 7 if all_lost else 12
    expected = [] if all_lost else written(run_generate(*words, "--task", "translation"))
    lost = size - len({line.split("\t")[0] for line in expected if line[0] == "H"})
    assert lost
    for extra in ([], ["--norm-records", tmp_path / "r"]):
        caplog.clear()
        found = written(run_generate(*words, "--task", "translation_norm", *extra))
        assert found[: len(expected)] == expected
        assert {line.split("\t")[0] for line in found if line[0] == "H"} == {f"H-{id_}" for id_ in range(size)}
        assert f"{lost} of {size} sentences" in caplog.text
    assert {sentence.id for sentence in Records(tmp_path / "r")} == set(range(size))


def test_no_kind_of_maps_changes_a_score_and_no_padding_a_map(stock, norm, tmp_path):
    maps, mode = {}, [SCORE]
    for padding in ([], ["--left-pad-source"], ["--left-pad-target"]):
        output = norm(*mode, *padding, "--norm-records", tmp_path / "-".join(["r", *padding]), *EVERY_KIND)
        assert output.lines() == stock(*mode, *padding).lines()
        maps["".join(padding)] = records_of(tmp_path / "-".join(["r", *padding]))
    assert len(maps[""]) == 12
    for id_, sentence in maps[""].items():
        assert sentence.kinds == tuple(KINDS)
        for other in maps.values():
            for kind in KINDS:
                np.testing.assert_allclose(other[id_].layer_maps(kind), sentence.layer_maps(kind), atol=2e-5, rtol=1e-4)


def test_ensembles_too(stock, norm, checkpoint, trained, tmp_path):
    both = f"{checkpoint}:{trained('second', seed=2)}"
    for mode in (["--beam", 2], [SCORE]):
        expected = stock(*mode, path=both).lines()
        output = norm(*mode, "--print-alignment", "hard", "--norm-records", tmp_path / mode[0], path=both)
        assert output.lines() == expected


def test_a_model_of_the_other_direction_is_told(norm, trained, tmp_path, capfd):
    path = trained("directed", "-s", "xx", "-t", "yy")  # fairseq-train does not save languages that it found itself
    norm(SCORE, "--norm-records", tmp_path / "right", path=path)
    assert "was trained from" not in capfd.readouterr().err
    norm(SCORE, "-s", "yy", "-t", "xx", "--norm-records", tmp_path / "wrong", path=path)
    assert "checkpoint_last.pt was trained from xx to yy, but is used from yy to xx" in capfd.readouterr().err


@pytest.mark.parametrize("options", [["--beam", 2, "--left-pad-source"], [SCORE]], ids=str)
def test_weights_of_the_last_layer_are_what_stock_prints(stock, norm, options):
    expected = stock(*options, *HARD).lines("A")
    assert len(expected) == 12
    assert norm(*options, "--norm-map", "attn_w", "--norm-layer", 1, *HARD).lines("A") == expected


@pytest.mark.parametrize("mode", [["--beam", 2], [SCORE]], ids=str)
@pytest.mark.parametrize("heads", [[], ["--norm-map", "attn_w", "--norm-heads", "0,3"]], ids=str)
def test_soft_alignments_are_the_maps_of_the_records(norm, tmp_path, mode, heads):
    options = ["--print-alignment", "soft", "--norm-layer", 0, "--norm-setting", "awi", *heads, "--norm-records"]
    printed = {id_: content for id_, _, content in norm(*mode, *options, tmp_path / "r").lines("A")}
    for id_, sentence in records_of(tmp_path / "r").items():
        values = [[float(v) for v in row.split(",")] for row in printed[id_].split(" ")]
        map_ = sentence.head_maps("attn_w")[0, [0, 3]].mean(0) if heads else sentence.layer_maps("attn_n")[0]
        np.testing.assert_allclose(values, map_[1:], atol=1e-5)


@pytest.mark.parametrize(
    ("mode", "maps", "extracted", "setting", "rule"),
    [
        (NBEST, ["--norm-map", "attn_w", "--norm-layer", 1], ["--kind", "attn_w", "--heads", 1], "awi", "shift-att"),
        ([SCORE], ["--norm-layer", 0, "--norm-heads", 2], ["--heads", "0.2"], "awo", "kobayashi2020"),
    ],
    ids=["layer", "head"],
)
def test_the_alignments_file_is_the_extraction(norm, tmp_path, capsys, mode, maps, extracted, setting, rule):
    options = [*maps, "--norm-setting", setting, "--norm-rule", rule]
    norm(*mode, *options, "--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "both")
    norm(*mode, *options, "--norm-alignments", tmp_path / "alone")
    capsys.readouterr()
    words = ["extract", tmp_path / "r", *extracted, "--setting", setting, "--rule", rule]
    assert cli.main([str(word) for word in words]) == 0
    expected = capsys.readouterr().out
    assert expected.count("\n") == 12
    assert "-" in expected
    assert (tmp_path / "both").read_text() == (tmp_path / "alone").read_text() == expected


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (["--num-shards", 2], "--distributed-world-size N --distributed-rank k"),
        (["--retain-dropout"], "--retain-dropout"),
        ([*HARD, "--norm-map", "alti", "--norm-record-kinds", "alti"], "--norm-map alti, only attn_w or attn_n"),
        (SHORTER, r"Size of sample #3 is invalid .*max_positions=.*60"),
        (["--gen-subset", "test1", "--max-source-positions", 1, SKIP], "too long, and no other is left"),
    ],
)
def test_a_run_that_is_refused_leaves_nothing(norm, tmp_path, options, text):
    with pytest.raises(Exception, match=text):
        norm(*options, "--norm-records", tmp_path / "r", "--norm-alignments", tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("mode", [["--beam", 2], [SCORE]], ids=["generate", "score"])
def test_a_long_sentence_is_skipped_and_said_so(norm, tmp_path, mode):
    options = [SKIP, "--norm-records", tmp_path / "r"]
    output = norm(*mode, *SHORTER, *options, "--norm-alignments", tmp_path / "a")
    assert [id_ for id_, _, _ in output.lines("H")] == [0, 1, 2, 4, 5]
    records = records_of(tmp_path / "r")
    assert sorted(records) == list(range(6))
    assert {id_ for id_, sentence in records.items() if not sentence.ok} == {3}
    assert records[3].status == "skipped: longer than max_positions=(60, 1024)"
    assert (records[3].source.tokens, records[3].target.tokens, records[3].score) == ((), (), None)
    lines = (tmp_path / "a").read_text().splitlines()
    assert [bool(line) for line in lines] == [True, True, True, False, True, True]


def test_a_long_sentence_is_truncated_only_on_demand(norm, texts, tmp_path):
    norm(SCORE, *SHORTER, "--truncate-source", "--norm-records", tmp_path / "r")
    source = texts[-1][3][0].split()
    assert list(records_of(tmp_path / "r")[3].source.tokens) == [*source[:59], "</s>"]
