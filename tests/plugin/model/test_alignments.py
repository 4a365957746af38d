"""Alignments from Python: those of the command line, in the order of the lists."""

import hashlib

import pytest

import fairseq_norm_plugin
from alignment_eval.alignment import Alignment
from alignment_eval.commands import main as align_eval
from alignment_eval.errors import AlignmentWarning, InputError
from alignment_eval.reading import file_hash
from fairseq_norm_plugin.model import windows
from tests import demo
from tests.demo import DEMO
from tests.facts import says

TABLE = DEMO / "checkpoint.pt.align.parquet"
SOURCES, TARGETS = demo.lines("de"), demo.lines("en")


@pytest.fixture(scope="module")
def models():
    """German-English alone, and both directions."""
    options = [{}, {"reverse_path": DEMO / "checkpoint.en-de.pt"}]
    path, codes = DEMO / "checkpoint.pt", DEMO / "codes.bpe"
    return [fairseq_norm_plugin.load(path, DEMO, "de", "en", bpe_codes=codes, **option) for option in options]


def command_line(tmp_path, source, target, *options):
    from fairseq_norm_plugin.align.cli import main

    for name, content in (("source", source), ("target", target)):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in content), encoding="utf-8")
    texts = ["--source-text", tmp_path / "source", "--target-text", tmp_path / "target"]
    model = ["--path", DEMO / "checkpoint.pt", "--data", DEMO, "-s", "de", "-t", "en"]
    args = [*model, "--bpe-codes", DEMO / "codes.bpe", *texts, "-o", tmp_path / "hyp", "--cpu", *options]
    assert main([str(arg) for arg in args]) == 0
    return (tmp_path / "hyp").read_text(encoding="utf-8")


@pytest.mark.parametrize("which", [0, 1], ids=["one direction", "both"])
def test_the_links_are_those_of_the_command_line(models, tmp_path, capfd, which):
    """With blank lines, in the order of the text, with every digit of the confidences.

    Also with a lexical table counted on the text, and with none.
    """
    reverse = [] if which == 0 else ["--reverse-path", DEMO / "checkpoint.en-de.pt"]
    texts = ([*SOURCES[:12], "", "ja ."], [*TARGETS[:12], "x", ""])
    for table in (None, "text", "none"):
        option, given = ([], {}) if table is None else (["--table", table], {"table": table})
        expected = command_line(tmp_path, *texts, "--confidences", *reverse, *option, "--overwrite")
        said = capfd.readouterr().err
        alignments = models[which].align(*texts, **given)
        alignments.to_pharaoh(tmp_path / "python", confidences=True, overwrite=True)
        assert (tmp_path / "python").read_text(encoding="utf-8") == expected
        assert [alignment.status for alignment in alignments] == ["ok"] * 12 + ["empty"] * 2
        assert tuple(map(list, zip(*((alignment.source, alignment.target) for alignment in alignments)))) == texts
        assert said.splitlines()[-1] == alignments.signature
        assert align_eval(["signature", str(tmp_path / "hyp")]) == 0
        printed = capfd.readouterr().out
        assert "|".join(line.replace("\t", ":", 1) for line in printed.splitlines()) == alignments.signature
        for name, write in (("python", None), ("python.parquet", alignments.to_parquet)):
            if write is not None:
                write(tmp_path / name, overwrite=True)
            assert align_eval(["signature", str(tmp_path / name)]) == 0
            assert capfd.readouterr().out == printed
        assert table != "none" or "|table:none|" in alignments.signature
        assert table != "text" or f"|table:{file_hash(TABLE)}+text|" in alignments.signature
    within = models[which].align(*texts)
    assert models[which].align(SOURCES[0], TARGETS[0]).links == within[0].links
    assert f"|table:{file_hash(TABLE)}|" in within.signature


def test_a_lexical_table_of_another_text(models):
    strange = ["xqzj " * 120], ["zjqx " * 120]
    with pytest.raises(InputError, match="are not in the lexical table"):
        models[0].align(*strange, table=TABLE)


def test_text_of_another_domain_is_told_of_its_own_table(models, recwarn):
    """From a tenth of unknown words on, unless its table is counted; lines of the demo have few such words."""
    strange = [f"{line} xqzj-{k} xqzj xqzj" for k, line in enumerate(SOURCES[:12])]
    for sources, options, told in (
        (SOURCES[:12], {}, False),
        (strange, {}, True),
        (strange, {"table": "text"}, False),
    ):
        recwarn.clear()
        models[0].align(sources, TARGETS[:12], **options)
        assert any(says(str(warning.message), "lexical table … --table text") for warning in recwarn) == told


def test_texts_of_equal_length_have_different_signatures(models, tmp_path):
    signatures = [models[0].align(SOURCES[k : k + 2], TARGETS[k : k + 2], profile="none").signature for k in (0, 2)]
    fields = [dict(field.split(":", 1) for field in signature.split("|")) for signature in signatures]
    assert {name for name in fields[0] if fields[0][name] != fields[1][name]} == {"run", "text"}
    for name, side in (("source", SOURCES[:2]), ("target", TARGETS[:2])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in side), encoding="utf-8")
    sums = (hashlib.blake2b((tmp_path / name).read_bytes()).hexdigest()[:12] for name in ("source", "target"))
    assert fields[0]["text"] == ",".join(sums)  # b2sum FILE | cut -c-12
    expected = {"model", "dictionary", "codes", "tokenizer", "lowercase", "normalize", "rule", "torch", "fairseq"}
    assert expected <= set(fields[0])


def test_one_pair(models):
    alignment = models[1].align(SOURCES[0], TARGETS[0], profile="none")
    assert isinstance(alignment, Alignment)
    assert (alignment.source, alignment.target) == (SOURCES[0], TARGETS[0])
    assert alignment.source_words == tuple(SOURCES[0].split())
    assert alignment.links == sorted(alignment.confidences)
    assert all(0 < confidence <= 1 for confidence in alignment.confidences.values())
    (again,) = models[1].align(iter(SOURCES[:1]), (line for line in TARGETS[:1]), profile="none")
    assert again == alignment
    assert alignment.word_map.shape == (len(alignment.target_words), len(alignment.source_words) + 1)
    for (i, j), confidence in alignment.confidences.items():
        assert alignment.word_map.iloc[j, i] <= confidence + 0.005  # of which it is one share
        assert alignment.explain(i, j).linked


def test_it_logs_which_way_it_takes(models, caplog, capfd):
    with caplog.at_level("INFO", "fairseq_norm_plugin"):
        alignments = models[0].align(SOURCES[:30], TARGETS[:30], profile="none")
    assert "profile: none, chosen on the text itself" in caplog.text
    assert "sentences:30|" in alignments.signature
    assert "profile:agreement" in alignments.signature
    assert capfd.readouterr().err == ""  # no progress bar where there is no terminal


def test_the_first_alignments_keep_their_maps(models, monkeypatch):
    monkeypatch.setattr(windows, "KEPT", 5)
    alignments = models[0].align(SOURCES[:20], TARGETS[:20])
    assert [alignment.maps is not None for alignment in alignments] == [True] * 5 + [False] * 15


def test_pairs_that_cannot_be_aligned(models, recwarn):
    alignments = models[0].align(["a " * 2000, "ja .", " \t"], ["x", "yes .", "x"])
    assert [alignment.status for alignment in alignments] == ["longer than 1024 tokens", "ok", "empty"]
    assert [bool(alignment.links) for alignment in alignments] == [False, True, False]
    said = str(recwarn.pop(AlignmentWarning).message)
    reasons = "1 longer than 1024 tokens (the first is number 0) … 1 empty (the first is number 2)"
    assert says(said, f"2 of 3 … {reasons}")
    assert len(alignments[0].source_words) == 2000
    for source in (" ", "a " * 2000):
        with pytest.raises(InputError, match=r"the sentence pair is (empty|longer than 1024 tokens)"):
            models[0].align(source, "x")


def test_a_copy_is_linked_where_nothing_else_is(models):
    """With a confidence, as every other link has, unless it is of a symmetrisation."""
    pair = "guten morgen http://a.de/b", "it is not raining http://a.de/b"
    for model, options, confidences in ((models[0], {}, {(2, 4): 1.0}), (models[1], {"join": "union"}, {})):
        found = model.align(*pair, protect="zzzz", rule="two-way=1", **options)
        assert (found.links, found.confidences) == ([(2, 4)], confidences)
