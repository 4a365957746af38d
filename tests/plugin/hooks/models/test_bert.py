"""``--arch bert``: RoBERTa with an eps of its own, which the checkpoint keeps."""

from __future__ import annotations

import argparse
from types import SimpleNamespace

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.roberta import RobertaModel

from fairseq_norm_plugin.hooks.models.bert import BertModel, bert_architecture


def model(cls=BertModel, **options):
    args = argparse.Namespace(
        encoder_layers=2, encoder_embed_dim=8, encoder_ffn_embed_dim=12, encoder_attention_heads=2, max_positions=16,
        tokens_per_sample=16, task="masked_lm", **options,
    )  # fmt: skip
    bert_architecture(args)
    torch.manual_seed(0)
    return cls.build_model(args, SimpleNamespace(source_dictionary=Dictionary())).eval()


def norms(built):
    return [module for module in built.modules() if isinstance(module, torch.nn.LayerNorm)]


@pytest.mark.parametrize(("options", "eps"), [({}, 1e-12), ({"layer_norm_eps": 0.1}, 0.1)])
def test_every_norm_has_the_eps(options, eps):
    found = norms(model(**options))
    assert len(found) == 2 * 2 + 2  # two a layer, of the embeddings, of the masked-LM head
    assert [norm.eps for norm in found] == [eps] * len(found)
    assert {norm.eps for norm in norms(model(RobertaModel))} == {1e-5}


def test_parameters_are_robertas_and_the_eps_changes_the_output():
    bert, roberta = model(), model(RobertaModel)
    assert bert.state_dict().keys() == roberta.state_dict().keys()
    roberta.load_state_dict(bert.state_dict())
    for parameter in (*bert.encoder.sentence_encoder.embed_tokens.parameters(),):
        parameter.data.mul_(1e-2)  # small, as BERT's are
    tokens = torch.tensor([[0, 3, 3, 2]])
    with torch.no_grad():
        states = [m(tokens, features_only=True)[0] for m in (bert, roberta)]
    assert not torch.allclose(*states, atol=1e-4)
