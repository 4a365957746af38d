"""Real data: AERs of an independent float64 computation with the same checkpoint, attention of CTranslate2.

The reference (../shared/models/README.md) was computed one sentence at a time by other code, with the rules of
``kobayashi2020``: rows AWO/AWI × </s> allowed/masked × weights/norms, layers 0-2 and the best head.
"""

import json

import numpy as np
import pytest

import fairseq_norm_plugin as fnp
from alignment_eval.commands.sweep import configurations, sweep
from alignment_eval.links.files import ReadOptions, read_gold
from alignment_eval.records import Records

# (setting, null, kind): layer 0, 1, 2, best head
VILAR508 = {
    ("awo", "allow", "attn_w"): (92.02, 53.69, 55.33, 54.15),
    ("awo", "allow", "attn_n"): (89.17, 51.64, 53.47, 53.08),
    ("awo", "mask", "attn_w"): (88.61, 51.86, 53.83, 52.71),
    ("awo", "mask", "attn_n"): (88.46, 51.62, 53.47, 53.10),
    ("awi", "allow", "attn_w"): (86.61, 84.36, 85.87, 78.78),
    ("awi", "allow", "attn_n"): (85.03, 80.52, 84.19, 75.12),
    ("awi", "mask", "attn_w"): (85.64, 79.38, 81.49, 75.21),
    ("awi", "mask", "attn_n"): (84.29, 80.01, 82.89, 75.20),
}
CMU150 = {
    ("awo", "allow", "attn_w"): (90.49, 53.96, 56.54, 53.44),
    ("awo", "allow", "attn_n"): (88.95, 51.49, 54.52, 53.24),
    ("awo", "mask", "attn_w"): (88.61, 52.71, 55.38, 53.09),
    ("awo", "mask", "attn_n"): (88.20, 51.61, 54.59, 53.26),
    ("awi", "allow", "attn_w"): (86.26, 86.84, 88.45, 75.91),
    ("awi", "allow", "attn_n"): (84.70, 83.28, 87.02, 74.04),
    ("awi", "mask", "attn_w"): (85.85, 81.88, 84.92, 74.68),
    ("awi", "mask", "attn_n"): (84.42, 82.43, 85.68, 74.23),
}
SETS = {
    "vilar508": ("test", "gold/vilar508/alignment.talp", VILAR508, 508),
    "cmu150": ("dev", "gold/cmu150/dev.talp", CMU150, 150),
}


def record(shared, directory, prefix, program):
    """Binarise one of the stored BPE files and force-decode it."""
    model = shared / "models" / "deen-small"
    for lang in ("de", "en"):
        (directory / f"test.{lang}").write_bytes((model / f"{prefix}.bpe.{lang}").read_bytes())
    program(
        *("fairseq-preprocess", "-s", "de", "-t", "en", "--testpref", directory / "test"),
        *("--srcdict", model / "dict.de.txt", "--tgtdict", model / "dict.en.txt", "--destdir", directory / "bin"),
    )
    program(
        *("fairseq-generate", directory / "bin", "--path", model / "checkpoint.pt", "--cpu"),
        *("--user-dir", "fairseq_norm_plugin", "--task", "translation_norm", "--score-reference"),
        *("--norm-records", directory / "forced", "--norm-alignments", directory / "hyp.pharaoh"),
    )


@pytest.mark.shared
@pytest.mark.parametrize("name", ["cmu150", pytest.param("vilar508", marks=pytest.mark.slow)])
def test_the_sweep_gives_the_independent_figures(name, shared, program, tmp_path):
    prefix, gold, expected, size = SETS[name]
    record(shared, tmp_path, prefix, program)
    options = configurations(["attn_w", "attn_n"], ["awo", "awi"], ["kobayashi2020"])
    pairs = list(read_gold(shared / "data" / gold, ReadOptions(base="1")))
    table = sweep(Records(tmp_path / "forced").best(), pairs, options)[0]
    for (setting, null, kind), figures in expected.items():
        rows = table[(table.setting == setting) & (table.null == null) & (table.kind == kind)]
        layers = rows[rows.level == "layer"].sort_values("layer").aer * 100
        heads = rows[rows.level == "head"].aer * 100
        assert len(heads) == 12
        assert [*layers, heads.min()] == pytest.approx(figures, abs=0.05), (setting, null, kind)
    # the plugin's own file is the default extraction: norms, last layer but one, AWO
    extracted = program(
        *("align-eval", "extract", tmp_path / "forced", "--kind", "attn_n"),
        *("--heads", "1", "--setting", "awo", "--rule", "kobayashi2020"),
    ).stdout
    assert extracted == (tmp_path / "hyp.pharaoh").read_text()
    assert extracted.count("\n") == size


# -- a model that somebody else trained


@pytest.mark.shared
def test_attention_of_ctranslate2(shared):
    """OpenNMT's transliteration model: CTranslate2's own weights of head 0 in the last layer, for six words."""
    directory = shared / "models/aren-transliteration"
    model = fnp.load(
        *(directory / "checkpoint.pt", directory),
        source_lang="src",
        target_lang="tgt",
        tokenizer="none",
        bpe="none",
    )
    words = json.loads((directory / "ref.json").read_text(encoding="utf-8"))
    assert len(words) == 6
    for word in words:
        maps = model.maps(" ".join(word["src"]), " ".join(word["tgt"]), kinds=["attn_w"])
        rows = maps.head_maps("attn_w")[-1, 0][: len(word["attn"])]
        assert rows == pytest.approx(np.array(word["attn"]), abs=1e-6)
