"""``--arch marian``: what differs from fairseq's Transformer."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerModel

from fairseq_norm_plugin.hooks.models.marian import MarianModel, marian_architecture, sinusoids


def model(cls=MarianModel, **options):
    args = argparse.Namespace(
        encoder_layers=2, encoder_embed_dim=8, encoder_ffn_embed_dim=12, encoder_attention_heads=2, decoder_layers=2,
        decoder_attention_heads=2, max_source_positions=16, max_target_positions=12, **options,
    )  # fmt: skip
    marian_architecture(args)
    args.activation_fn = "relu" if cls is TransformerModel else args.activation_fn
    words = Dictionary()
    for word in "abcdef":
        words.add_symbol(word)
    torch.manual_seed(0)
    return cls.build_model(args, SimpleNamespace(source_dictionary=words, target_dictionary=words)).eval()


@pytest.mark.parametrize("share", [True, False])
def test_parameters_are_those_of_fairseqs_transformer_and_a_bias(share):
    names = model(share_all_embeddings=share).state_dict().keys()
    assert names - model(TransformerModel, share_all_embeddings=share).state_dict().keys() == {
        "decoder.output_projection.bias"
    }


def test_positions_are_counted_from_0_after_the_padding():
    positions = model().encoder.embed_positions
    table = sinusoids(16, 8)
    assert torch.equal(positions(torch.tensor([[1, 1, 4, 5, 2]]))[0, 2:], table[:3])
    assert torch.equal(positions(torch.tensor([[4, 5, 2, 1]]))[0, :3], table[:3])
    assert torch.equal(positions(torch.tensor([[2, 4, 5]]), incremental_state={})[0], table[2:3])
    with pytest.raises(IndexError):
        positions(torch.full((1, 17), 4))


def test_sinusoids_are_those_of_the_paper():
    """Vaswani et al. (2017): sin(p / 10000^(2k / width)), and the cosines; also of an odd width."""
    for width in (6, 7):
        table = sinusoids(5, width)
        for position in (0, 1, 4):
            angles = [position / 10000 ** (2 * (j // 2) / width) for j in range(width)]
            sines, cosines = (torch.tensor(part).double() for part in (angles[::2], angles[1::2]))
            expected = torch.cat([sines.sin(), cosines.cos()])
            torch.testing.assert_close(table[position].double(), expected, rtol=0, atol=1e-6)


def test_step_by_step_is_one_pass():
    marian = model()
    marian.decoder.output_projection.bias.data.normal_()
    encoded = marian.encoder(torch.tensor([[4, 5, 2]]), None)
    inputs = torch.tensor([[2, 5, 6, 7]])
    whole, _ = marian.decoder(inputs, encoder_out=encoded)
    state: dict[str, object] = {}
    steps = [marian.decoder(inputs[:, : n + 1], encoder_out=encoded, incremental_state=state)[0] for n in range(4)]
    torch.testing.assert_close(torch.cat(steps, 1), whole, rtol=0, atol=1e-5)
