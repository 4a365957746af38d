"""Models of each family, read from Transformers' files: states, logits, translations and maps are Transformers'."""

import pytest
import torch
from check_model import differences, translations
from stock_models import Transformers

import fairseq_norm_plugin
from tests.families import KINDS, save

pytest.importorskip("safetensors")

OWN_VOCABULARIES = {"share_encoder_decoder_embeddings": False, "activation_function": "relu"}
#: Shapes that are run by hand: the proportions of the released models, and others than fairseq's usual ones.
BASE = {
    "width": 256,
    "layers": (12, 12),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 16),
    **dict.fromkeys(("encoder_ffn_dim", "decoder_ffn_dim"), 1024),
}
OPUS = {**BASE, "layers": (6, 6), **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 8)}
ODD = {
    "width": 48,
    "layers": (1, 4),
    "encoder_attention_heads": 6,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 70,
    "activation_function": "gelu",
    "scale_embedding": False,
    "tie_word_embeddings": False,
}
#: Options of a small model; and of larger ones.
SMALL = {name: {} for name in KINDS} | {
    "marian": {"activation_function": "swish"},
    "fsmt": {"tie_word_embeddings": True},
}
SLOW = [
    *((name, OPUS if name in ("marian", "fsmt") else BASE) for name in KINDS),
    *((name, ODD) for name in KINDS),
    ("marian", OWN_VOCABULARIES),
    ("mbart", {"activation_function": "relu"}),
]


def both(directory, name, **options):
    """A random model, read by the plugin, and by Transformers."""
    save(directory, name, **options)
    source, target = KINDS[name][2]
    model = fairseq_norm_plugin.load(directory, source_lang=source, target_lang=target)
    return model, Transformers(model, directory)


def random_sides(model, count, longest):
    """Sources and targets, in ids: all tokens that are not special in random order, again and again."""
    generator, sides = torch.Generator().manual_seed(count), []
    for which, vocabulary in enumerate(model.vocabularies):
        before, after = model.forward.special_tokens.around(which)
        plain = [n for n in range(4, len(vocabulary.dictionary)) if n not in vocabulary.specials]
        lengths = torch.randint(1, longest + 1, (count,), generator=generator).tolist()
        rounds = range(-(-sum(lengths) // len(plain)))
        ids = [plain[n] for _ in rounds for n in torch.randperm(len(plain), generator=generator).tolist()]
        ends = torch.tensor(lengths).cumsum(0).tolist()
        sides.append([[*before, *ids[end - length : end], *after] for end, length in zip(ends, lengths)])
    return sides


@pytest.mark.parametrize(
    ("name", "options", "count", "longest"),
    [
        *((name, options, 40, 12) for name, options in SMALL.items()),
        *(pytest.param(name, options, 200, 30, marks=pytest.mark.slow) for name, options in SLOW),
    ],
)
def test_a_model_computes_what_transformers_does(tmp_path, name, options, count, longest):
    model, reference = both(tmp_path / "model", name, **options)
    found = differences(model, reference, list(zip(*random_sides(model, count, longest))))
    assert max(found.values()) < 1e-5, found
    sharp, reference = both(tmp_path / "sharp", name, sharp=True, max_position_embeddings=40, **options)
    expected, translated = translations(sharp, reference, random_sides(sharp, count, longest)[0][:12])
    assert translated == expected
    assert len(set(map(tuple, translated))) >= 8
