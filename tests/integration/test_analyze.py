"""``norm-analyze`` from end to end: translation, a masked language model, bad input."""

import json
import shutil
from argparse import Namespace
from dataclasses import replace

import pandas as pd
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.roberta import RobertaModel
from fairseq.models.roberta.model import base_architecture

import alignment_eval as ae
import fairseq_norm_plugin
from alignment_eval.errors import InputError, UsageError
from alignment_eval.scoring.classes import TOKEN_CLASSES
from fairseq_norm_plugin.capture.layers import BLOCK_TYPES, ENCODER_SELF

CPU = ("--cpu", "--num-workers", 0)


@pytest.fixture(scope="session")
def analyze(program):
    return lambda *words: program("norm-analyze", *words, check=False)


def printed_means(text):
    """The printed mixing ratios in %, by block, layer and kind, in the order of the lines; a block is named once."""
    (_, *kinds), _, *lines = (line.split() for line in text.splitlines())
    means, block = {}, None
    for words in lines:
        *name, layer = words[: len(words) - len(kinds)]
        (block,) = name or [block]
        cells = zip(kinds, words[-len(kinds) :])
        means.update({(block, int(layer), kind): float(cell) for kind, cell in cells if cell != "-"})
    return list(means.items())


def written_means(path):
    rows = pd.read_csv(path).query("head.isna() and token_class == 'all'")
    means = rows.set_index(["block", "layer", "kind"])["mean"]
    return [(place, round(100 * mean, 1)) for place, mean in means.items()]


def test_tables_figures_and_summary(analyze, data, checkpoint, tmp_path):
    out = tmp_path / "out"
    kinds = "attn_w,attn_n,attnres_w,attnres_n,attnresln_n,ff_n,ffres_n,ffresln_n"
    result = analyze(data, "--path", checkpoint, "-o", out, "--mixing-kinds", kinds, *CPU)
    tables = {path.stem: pd.read_csv(path, keep_default_na=False) for path in out.glob("*.csv")}
    expected = "attention mixing mixing_by_frequency norm_by_frequency token_norms weight_norm_correlation"
    assert sorted(tables) == expected.split()
    summary = json.loads((out / "summary.json").read_text())
    assert summary["sentences"] == 12
    assert summary["task"] == "translation_norm"
    assert set(summary["positions_with_nothing_to_mix"]) == {"decoder.self 0", "decoder.self 1"}
    assert set(summary["positions_with_nothing_to_mix"].values()) == {12}
    model = fairseq_norm_plugin.load(checkpoint, data, bpe="none")
    assert len(summary["mixing_ratio"]) == model.layers * (8 + 5 + 6)
    frequency = tables["token_norms"].groupby("token")["frequency"].first()
    assert frequency["</s>"] == ""
    assert frequency.drop("</s>").str.isdecimal().all()
    names = {path.name for path in out.glob("*.png")}
    assert {f"mixing-{b.replace('.', '-')}.png" for b in BLOCK_TYPES} <= names
    assert "mixing-heads-encoder-self.png" in names
    assert "norm-frequency-decoder-cross.png" in names
    assert printed_means(result.stdout) == written_means(out / "mixing.csv")
    assert not list(out.parent.glob(".*"))


def test_class_shares_of_maps_are_those_of_the_analysis(analyze, data, checkpoint, texts, tmp_path):
    analyze(data, "--path", checkpoint, "-o", tmp_path / "out", *CPU)
    table = pd.read_csv(tmp_path / "out/attention.csv").query("block == 'decoder.cross'")
    maps = fairseq_norm_plugin.load(checkpoint, data, bpe="none").maps(*zip(*texts[2]))
    shares = ae.class_shares([replace(maps[0], arrays={}, status="empty"), *maps])
    assert list(shares) == [name for name in TOKEN_CLASSES if name in set(table["token_class"])]
    assert len(table) == 2 * 5 * len(shares.columns)
    for row in table.itertuples():
        place = row.layer, "all" if pd.isna(row.head) else int(row.head)
        for kind, share in (("attn_w", row.weight_share), ("attn_n", row.norm_share)):
            assert shares.loc[(kind, *place), row.token_class] == pytest.approx(share, rel=1e-5)
        assert shares.loc[("tokens", "all", "all"), row.token_class] == pytest.approx(row.token_share)
    with pytest.raises(InputError, match="no sentence has maps"):
        ae.class_shares([])


def test_a_subset_that_is_not_there(analyze, data, checkpoint, tmp_path):
    words = (data, "--path", checkpoint, "-o", tmp_path / "out", *CPU, "--gen-subset", "nosuch")
    result = analyze(*words)
    assert result.returncode == 1
    assert "--gen-subset" in result.stderr
    assert not (tmp_path / "out").exists()


def test_dictionaries_of_another_model(masked_lm, analyze, data, tmp_path):
    other = shutil.copytree(masked_lm / "bin", tmp_path / "bin")
    with (other / "dict.txt").open("a") as dictionary:
        dictionary.write("new 1\n")
    words = ("--path", masked_lm / "checkpoint.pt", "--task", "masked_lm_norm", *CPU)
    result = analyze(other, *words, "-o", tmp_path / "out")
    assert result.returncode == 1
    assert "checkpoint.pt: its parameters do not fit the dictionaries" in result.stderr


@pytest.fixture(scope="module")
def masked_lm(program, texts, tmp_path_factory):
    """Binarised text of one language, and a small random RoBERTa, in half precision and as old fairseq saved it."""
    directory = tmp_path_factory.mktemp("mlm")
    lines = [source for source, _ in texts[2]] + ["ba"]
    (directory / "text").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    program(
        "fairseq-preprocess", "--only-source", "--trainpref", directory / "text",
        "--testpref", directory / "text", "--destdir", directory / "bin",
    )  # fmt: skip
    dictionary = Dictionary.load(str(directory / "bin" / "dict.txt"))
    dictionary.add_symbol("<mask>")
    args = Namespace(encoder_layers=2, encoder_embed_dim=16, encoder_ffn_embed_dim=24, encoder_attention_heads=4)
    args.max_positions = args.tokens_per_sample = 120
    args.arch, args.task, args.criterion, args.data = "roberta", "masked_lm", "masked_lm", str(directory / "bin")
    base_architecture(args)
    torch.manual_seed(0)
    model = RobertaModel.build_model(args, Namespace(source_dictionary=dictionary))
    state = {
        "args": args,
        "model": model.half().state_dict(),
        "extra_state": {"train_iterator": {"epoch": 1}},
        "last_optimizer_state": None,
        "optimizer_history": [{"num_updates": 0, "criterion_name": "masked_lm", "lr_scheduler_state": {}}],
    }
    torch.save(state, directory / "checkpoint.pt")
    return directory


def test_masked_language_model(masked_lm, analyze, tmp_path):
    words = (masked_lm / "bin", "--path", masked_lm / "checkpoint.pt", "--task", "masked_lm_norm", *CPU)
    analyze(*words, "-o", tmp_path / "out", "--mixing-kinds", "attn_w,attn_n,attnresln_n,ffresln_n")
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["sentences"] == 13
    assert summary["data"] != "0" * 16
    mixing = pd.read_csv(tmp_path / "out" / "mixing.csv")
    assert set(mixing["block"]) == {ENCODER_SELF}
    assert {"<s>", "</s>", "other", "all"} <= set(mixing["token_class"])
    attention = pd.read_csv(tmp_path / "out" / "attention.csv")
    assert "mask" not in set(attention["token_class"])
    for _, rows in attention.groupby(["layer", "head"], dropna=False):
        assert rows["weight_share"].sum() == pytest.approx(1)
        assert rows["norm_share"].sum() == pytest.approx(1)


def test_masks_of_pretraining(masked_lm, analyze, tmp_path):
    """A tenth of 40 %, kept or replaced, is a word; the same seed masks the same tokens."""
    words = (masked_lm / "bin", "--path", masked_lm / "checkpoint.pt", "--task", "masked_lm_norm", *CPU)
    tables = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        options = ("--mask-prob", 0.4, "--seed", seed, "--figure-formats", "svg", "-o", tmp_path / name)
        analyze(*words, "--mixing-kinds", "attn_w,attnresln_n", *options)
        tables.append((tmp_path / name / "mixing.csv").read_text())
    assert tables[0] == tables[1] != tables[2]
    positions = pd.read_csv(tmp_path / "a/mixing.csv").query("head.isna() and layer == 0 and kind == 'attn_w'")
    masked, total = positions.set_index("token_class")["positions"][["mask", "all"]]
    assert 0.25 < masked / total < 0.4
    assert ">mask<" in (tmp_path / "a/mixing-classes-encoder-self.svg").read_text()
    norms = pd.read_csv(tmp_path / "a/token_norms.csv").query("token == '<mask>'")
    assert set(norms["token_class"]) == {"mask"}
    assert norms["frequency"].isna().all()


@pytest.mark.filterwarnings("ignore:.*:UserWarning")  # fairseq's way to call Hydra for options of the older kind
def test_maps_of_a_masked_language_model(masked_lm):
    model = fairseq_norm_plugin.load_masked_lm(masked_lm / "checkpoint.pt", masked_lm / "bin")
    maps = model.block_maps("ba ki", "attn_n")
    assert maps.rows == maps.columns
    assert (maps.rows[0], maps.rows[-1]) == ("<s>", "</s>")
    assert maps.layers.shape == (2, 4, 4)
    assert maps.heads.shape == (2, 4, 4, 4)
    assert maps.layers.dtype == "float32"  # from a checkpoint in fp16
    ratios = model.block_maps("ba ki", "attnres_w").mixing_ratio
    assert ((ratios > 0) & (ratios < 0.5)).all()
    assert model.block_maps("ba ki", "alti").mixing_ratio is None
    with pytest.raises(InputError, match=r"0 tokens: expected 1 to \d+ "):
        model.block_maps("", "attn_n")
    with pytest.raises(UsageError, match=r"unknown map kind 'norm'"):
        model.block_maps("ba", "norm")
    with pytest.raises(InputError, match=r"dict\.txt: no such file"):
        fairseq_norm_plugin.load_masked_lm(masked_lm / "checkpoint.pt", masked_lm)


def test_the_task_of_masked_models_does_not_train(masked_lm):
    from fairseq.tasks.masked_lm import MaskedLMConfig

    from fairseq_norm_plugin.tasks.norm import MaskedLMNormTask

    task = MaskedLMNormTask.setup_task(MaskedLMConfig(data=str(masked_lm / "bin")))
    with pytest.raises(UsageError, match="train with --task masked_lm"):
        task.build_criterion(None)
    with pytest.raises(InputError, match=r"no subset nosuch; make it"):
        task.load_dataset("nosuch")
