from dataclasses import replace

import pytest

from alignment_eval.errors import UsageError
from alignment_eval.extraction.method import AlignmentMethod, ExtractionOptions, MapNames
from alignment_eval.maps.words import FORMED
from alignment_eval.profiles.chosen import ChosenMethod
from fairseq_norm_plugin.hooks.options import USES, check_command, check_used, resolve
from fairseq_norm_plugin.tasks.norm import TranslationNormConfig
from tests.facts import facts

CFG = TranslationNormConfig()


def test_defaults_print_norms_of_the_last_layer_but_one():
    options = resolve(CFG, layers=6, heads=8)
    assert options.maps == ExtractionOptions("attn_n", "4", setting="awo")
    assert options.extraction is None
    assert resolve(CFG, layers=1, heads=8).maps.heads == MapNames("0")


def test_records_hold_everything_unless_told_otherwise():
    options = resolve(replace(CFG, norm_records="out"), 3, 4)
    assert options.recorded_layers == (0, 1, 2)
    assert options.recorded_kinds == ("attn_w", "attn_n")
    options = resolve(replace(CFG, norm_records="out", norm_record_layers="2,0", norm_record_kinds="attn_w"), 3, 4)
    assert options.recorded_layers == (0, 2)
    assert options.recorded_kinds == ("attn_w",)


def test_an_alignments_file_alone_records_only_its_map():
    cfg = replace(CFG, norm_alignments="hyp", norm_layer=2, norm_map="attn_w", norm_heads="3", norm_rule="shift-att")
    options = resolve(cfg, 3, 4)
    assert options.recorded_layers == (2,)
    assert options.recorded_kinds == ("attn_w",)
    method = options.extraction.method
    assert method.forward == ExtractionOptions("attn_w", "2.3", setting="awo", rule="shift-att", null="mask")
    weighed = resolve(replace(cfg, norm_rule="threshold=0.2"), 3, 4).extraction.method
    assert weighed.forward == ExtractionOptions("attn_w", "2.3", setting="awo", rule="threshold=0.2")


NAMED = {"norm_map": "attn_n", "norm_setting": "awo", "norm_rule": "kobayashi2020", "norm_layer": 1, "norm_heads": "0"}


@pytest.mark.parametrize("given", NAMED)
def test_a_given_option_wins_over_the_profile_even_if_it_names_the_default(given):
    maps = ExtractionOptions("attn_n", "2", setting="awi", rule="two-way=0.25")
    profile = ChosenMethod(AlignmentMethod(maps, sharpening=FORMED))
    cfg = replace(CFG, norm_alignments="hyp")
    assert resolve(cfg, 3, 4, profile).extraction == profile
    named = replace(cfg, **{given: NAMED[given]})
    assert resolve(named, 3, 4, profile).extraction == resolve(named, 3, 4).extraction


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"norm_map": "attn_q"}, "--norm-map attn_q … attn_w, attn_n"),
        ({"norm_setting": "aw"}, "--norm-setting aw … awo, awi"),
        ({"norm_alignments": "x", "norm_rule": "argmax"}, "--norm-rule argmax … kobayashi2020, shift-att"),
        ({"norm_layer": 3}, "--norm-layer 3: map 3 … layers 0, 1, 2"),
        ({"norm_layer": -1}, "--norm-layer -1: map -1 … layers 0, 1, 2"),
        ({"norm_heads": "0,4"}, "--norm-heads 0,4: map 1.4 … of 4 heads"),
        ({"norm_heads": "0,0"}, "--norm-heads '0,0' … duplicate"),
        ({"norm_heads": "a"}, "--norm-heads 'a' … numbers separated by commas"),
        ({"norm_records": "x", "norm_record_layers": "7"}, "--norm-record-layers 7"),
        ({"norm_records": "x", "norm_record_kinds": "attn_q"}, "--norm-record-kinds 'attn_q' … attn_w"),
        ({"norm_records": "x", "norm_record_kinds": ""}, "attn_w, attn_n"),
        ({"norm_alignments": "x", "norm_map": "ff_n", "norm_heads": "0"}, "--norm-map ff_n … whole layers only"),
        ({"norm_alignments": "x", "norm_heads": "0,1"}, "one head or the whole layer … --norm-heads 0,1"),
        (
            {"norm_alignments": "x", "norm_layer": 1, "norm_records": "y", "norm_record_layers": "0"},
            "attn_n of layers 1",
        ),
    ],
)
def test_bad_options_are_named(change, text):
    with pytest.raises(UsageError, match=facts(text)):
        resolve(replace(CFG, **change), layers=3, heads=4)


@pytest.mark.parametrize(
    ("change", "readers", "text"),
    [
        ({"norm_map": "attn_w"}, [], "--norm-map attn_w … --print-alignment or --norm-alignments or --aer-gold; omit"),
        ({"norm_rule": "shift-att"}, ["--print-alignment", "--norm-records"], "--norm-rule … --norm-alignments or"),
        ({"norm_profile": "p"}, ["--print-alignment", "--aer-gold"], "--norm-profile p … --norm-records"),
        ({"norm_part_sentences": 7}, ["--print-alignment"], "--norm-part-sentences 7"),
    ],
)
def test_what_nothing_reads_is_refused(change, readers, text):
    check_used(CFG, readers)
    check_used(replace(CFG, **change), list(USES))
    with pytest.raises(UsageError, match=facts(text)):
        check_used(replace(CFG, **change), readers)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"norm_records": ""}, "--norm-records '': … empty"),
        ({"norm_alignments": ""}, "--norm-alignments '': … empty"),
        ({"norm_records_resume": True, "norm_records_overwrite": True}, "--norm-records-resume and … contradict"),
        ({"norm_part_sentences": 0}, "--norm-part-sentences 0: "),
    ],
)
def test_commands_that_are_refused(change, text):
    cfg = replace(CFG, **{"source_lang": "de", "target_lang": "en", "data": "d", **change})
    with pytest.raises(UsageError, match=facts(text)):
        check_command(cfg, None, wanted=True, interactive=False)
