"""Texts that are no translations of each other are warned of before the work starts."""

import re
import shutil
from argparse import Namespace
from copy import copy
from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.models.transformer import base_architecture

import fairseq_norm_plugin as fnp
from alignment_eval.extraction.defaults import one_direction, product_of
from alignment_eval.extraction.method import MapName
from fairseq_norm_plugin.align.cli import main
from fairseq_norm_plugin.aligner.aligner import Aligner
from fairseq_norm_plugin.aligner.calibration import calibrate, can_align
from fairseq_norm_plugin.aligner.direction import Direction
from fairseq_norm_plugin.aligner.mismatch import find_mismatch, sampled
from fairseq_norm_plugin.text.codes import CodePieces
from fairseq_norm_plugin.text.pairs import ParallelText
from fairseq_norm_plugin.text.pieces import MarkedPieces
from fairseq_norm_plugin.text.tokenise import TextPipeline

DEMO = Path(__file__).resolve().parents[3] / "data" / "demo"
ROOT = DEMO.parents[1]
SIZES = ("layers", "attention_heads")


def direction_of(folder, checkpoint, source, target):
    model = fnp.load(folder / checkpoint, folder, source, target)
    return with_pieces(model, CodePieces(folder / "codes.bpe"), checkpoint)


def with_pieces(model, splitter, name):
    pipeline = TextPipeline(splitter)
    return Direction(model.models, (model.task.source_dictionary, model.task.target_dictionary), (pipeline,) * 2, name)


@pytest.fixture(scope="module")
def direction():
    return direction_of(DEMO, "checkpoint.pt", "de", "en")


@pytest.fixture
def warned(direction, tmp_path):
    """The warning about two lists of lines."""

    def warned(source, target, *directions):
        paths = [tmp_path / "source", tmp_path / "target"]
        for path, lines in zip(paths, (source, target)):
            path.write_text("".join(f"{line}\n" for line in lines))
        text = ParallelText([str(path) for path in paths])
        found = find_mismatch(sampled(text, text.size), directions or [direction])
        return found and found.message

    return warned


def lines(lang):
    return (DEMO / f"demo.{lang}").read_text().splitlines()


def test_the_demo_is_parallel(warned):
    assert warned(lines("de"), lines("en")) is None
    assert warned(lines("de")[:20], lines("en")[:20]) is None
    assert torch.is_grad_enabled()


def test_pairs_drawn_with_repetition_are_no_fault(warned):
    """The pair that lends another source must not be a copy."""
    drawn = np.random.default_rng(0).integers(0, 60, 300)
    assert warned(*([lines(language)[k] for k in drawn] for language in ("de", "en"))) is None
    shifted = lines("de")[1:] * 2, lines("en")[:-1] * 2
    assert "do not look like translations" in warned(*shifted)


def test_exchanged_texts(warned):
    assert "source and target look exchanged" in warned(lines("en"), lines("de"))
    assert "look like the same text" in warned(lines("de"), lines("de"))


def test_a_model_that_was_told_to_be_of_the_other_direction_is_no_fault_of_the_texts(warned, direction):
    used_backwards = copy(direction)
    used_backwards.trained = ("de", "en")
    assert warned(lines("en"), lines("de"), used_backwards) is None


def test_shifted_from_a_line_on(warned):
    found = warned(lines("de"), [*lines("en")[:30], *lines("en")[31:], "and so on ."])
    assert "lines 3" in found
    assert "missing or extra line" in found


def test_exchanged_texts_of_few_lines(warned):
    assert "source and target look exchanged" in warned(lines("en")[:3], lines("de")[:3])
    assert warned(lines("de")[:3], lines("en")[:3]) is None
    assert warned(lines("de")[:3], lines("en")[3:6]) is None  # too few to tell that they are unrelated
    assert warned([""], [""]) is None


@pytest.fixture(scope="module")
def dev(shared):
    """Source and target of real sentence pairs, tokenised and in lower case."""
    return [(shared / f"data/gold/cmu150/dev.{lang}").read_text().lower().splitlines()[:60] for lang in ("de", "en")]


@pytest.mark.shared
@pytest.mark.parametrize(
    ("change", "target_only", "named"),
    [
        (lambda line: re.sub(r" ([.,;:?!])", r"\1", line), False, "punctuation attached to words"),
        (lambda line: line[:1].upper() + line[1:], False, "seems to read lower case"),
        (lambda line: " ".join(line.split()[:6]), True, "targets look cut off"),
    ],
)
def test_text_unlike_that_of_the_training(warned, dev, change, target_only, named):
    source, target = dev
    assert named in warned(source if target_only else list(map(change, source)), list(map(change, target)))


@pytest.mark.shared
@pytest.mark.parametrize("kept", [1000, 6000, 8000])
def test_text_cut_by_other_codes(warned, dev, tmp_path, kept):
    """All pieces are known to the model, so that nothing else shows it."""
    codes = (DEMO / "codes.bpe").read_text().splitlines()[: kept + 1]
    (tmp_path / "codes").write_text("".join(f"{line}\n" for line in codes))
    splitter = CodePieces(tmp_path / "codes")
    pieces = [[" ".join(splitter.cut(line, line)[0]) for line in side] for side in dev]
    model = fnp.load(DEMO / "checkpoint.pt", DEMO, "de", "en")
    found = warned(*pieces, with_pieces(model, MarkedPieces("@@"), "checkpoint.pt"))
    assert found is None if kept == 8000 else "cut by other BPE codes" in found


def test_models_of_other_directions(warned, direction):
    """Without names of languages only the scores show it."""
    reverse = direction_of(DEMO, "checkpoint.en-de.pt", "en", "de")
    texts = lines("de"), lines("en")
    assert warned(*texts, direction, reverse) is None
    assert "exchange the two texts, or the two models" in warned(*texts, reverse, direction)
    assert "checkpoint.pt: looks like a model of the other direction" in warned(*texts, direction, direction)
    assert "checkpoint.en-de.pt: looks like a model of the other direction" in warned(*texts, reverse, reverse)


@pytest.mark.shared
def test_a_model_without_an_alignment_is_not_praised(direction, dev):
    """Near-uniform maps share the few links that they have: without a floor they agree to 100 %."""
    task = fnp.load(DEMO / "checkpoint.pt", DEMO, "de", "en").task
    sizes = {f"{side}_{name}": 6 if name == "layers" else 8 for side in ("encoder", "decoder") for name in SIZES}
    options = Namespace(arch="transformer", share_all_embeddings=True, max_source_positions=99, **sizes)
    options.max_target_positions, options.encoder_embed_dim, options.encoder_ffn_embed_dim = 99, 128, 256
    base_architecture(options)
    torch.manual_seed(0)
    untrained = copy(direction)
    untrained._models, untrained.layers = [task.build_model(options).eval()], 6
    source, target = direction.pipelines
    pairs = [(source.read(german), target.read(english)) for german, english in zip(*dev)]
    pairs = [pair for pair in pairs if can_align(pair, [untrained])]
    assert calibrate(untrained, pairs, "hash").chosen_by == "upper-layers"
    method = one_direction(product_of([MapName(1, None, "awi"), MapName(4, 7, "awo")]), word_table=False)
    aligner = Aligner(method, [untrained])
    assert len(list(aligner.align([enumerate(pairs)]))) == len(pairs)
    assert "the maps show no alignment" in aligner.links_warning()


def test_unrelated_text_is_not_aligned(tmp_path, capsys):
    (tmp_path / "shifted.en").write_text("\n".join([*lines("en")[7:], *lines("en")[:7], ""]))
    words = ["--path", DEMO / "checkpoint.pt", "--source-text", DEMO / "demo.de", "-s", "de", "-t", "en", "--cpu"]
    words += ["--target-text", tmp_path / "shifted.en", "-o", tmp_path / "links"]
    assert main([str(word) for word in words]) == 1
    assert "do not look like translations of each other" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["shifted.en"]
    assert main([str(word) for word in (*words, "--force")]) == 0
    assert "do not look like translations of each other" in capsys.readouterr().err


@pytest.fixture
def generate(program, run_generate, tmp_path, capsys):
    """Binarise two lists of lines in subwords, score the pairs, and return standard error."""

    def generate(source, target):
        for language, side in (("de", source), ("en", target)):
            (tmp_path / f"test.{language}").write_text("".join(f"{line}\n" for line in side))
        program(
            *("fairseq-preprocess", "-s", "de", "-t", "en", "--testpref", tmp_path / "test", "--srcdict"),
            *(DEMO / "dict.de.txt", "--tgtdict", DEMO / "dict.en.txt", "--destdir", tmp_path / "bin"),
        )
        words = ["--path", DEMO / "checkpoint.pt", "--user-dir", ROOT / "fairseq_norm_plugin", "--score-reference"]
        words += ["--task", "translation_norm", "--norm-alignments", tmp_path / "links"]
        run_generate(tmp_path / "bin", *words)
        return capsys.readouterr().err

    return generate


def test_fairseq_generate_makes_the_same_check(generate, tmp_path):
    pieces, other = {}, {}
    (tmp_path / "codes").write_text("\n".join((DEMO / "codes.bpe").read_text().splitlines()[:1001]))
    for codes, cut in ((DEMO / "codes.bpe", pieces), (tmp_path / "codes", other)):
        splitter = CodePieces(codes)
        for lang in ("de", "en"):
            cut[lang] = [" ".join(splitter.cut(line, line)[0]) for line in lines(lang)]
    assert "look" not in generate(pieces["de"], pieces["en"])
    for source, target, named in (
        (pieces["en"], pieces["de"], "source and target look exchanged"),
        (pieces["de"][7:], pieces["en"][:-7], "do not look like translations of each other"),
        (pieces["de"], pieces["de"], "look like the same text"),
        (other["de"], other["en"], "cut by other BPE codes"),
    ):
        shutil.rmtree(tmp_path / "bin")
        (tmp_path / "links").unlink()
        assert named in generate(source, target)


def test_an_undertrained_model_tells_too(shared, warned):
    """deen-small stores no languages, so nothing else would tell exchanged texts."""
    folder = shared / "models/deen-small"
    small = direction_of(folder, "checkpoint.pt", "de", "en")
    texts = [(shared / f"data/gold/cmu150/dev.{lang}").read_text().lower().splitlines()[:60] for lang in ("de", "en")]
    assert warned(*texts, small) is None
    assert "look exchanged" in warned(*texts[::-1], small)
    assert "do not look like translations" in warned(texts[0][1:], texts[1][:-1], small)
