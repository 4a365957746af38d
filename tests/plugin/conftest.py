"""Random Transformers of any shape, built in-process under the norm task."""

from types import SimpleNamespace

import pytest
import torch
from fairseq.data.language_pair_dataset import collate
from fairseq.models.transformer import TransformerConfig, TransformerModel
from fairseq.models.transformer.transformer_legacy import base_architecture
from torch.utils._python_dispatch import TorchDispatchMode

from fairseq_norm_plugin.capture.attention import swap_attention
from tests.plugin.dictionaries import dictionary_of


def dictionary(words=30, mark="@@"):
    return dictionary_of(*(f"w{i}{mark if i % 3 == 0 else ''}" for i in range(words)))


def random_model(seed=0, swap=True, before=False, **options):
    """A TransformerModel in evaluation mode; ``options`` as in fairseq's legacy arguments.

    ``before``: its layer norms come first.
    """
    torch.manual_seed(seed)
    args = SimpleNamespace(
        **{
            "encoder_embed_dim": 16,
            "encoder_ffn_embed_dim": 24,
            "encoder_layers": 2,
            "encoder_attention_heads": 4,
            "decoder_layers": 3,
            "decoder_attention_heads": 4,
            "encoder_normalize_before": before,
            "decoder_normalize_before": before,
            "dropout": 0.1,
            "max_source_positions": 64,
            "max_target_positions": 64,
            **options,
        }
    )
    base_architecture(args)
    task = SimpleNamespace(source_dictionary=dictionary(), target_dictionary=dictionary())
    cfg = TransformerConfig.from_namespace(args)
    model = TransformerModel.build_model(args, task)
    for parameter in model.parameters():  # fairseq starts biases at 0, where a forgotten one would not show
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter, std=0.5)
    model.eval()
    model.cfg = cfg
    if swap:
        swap_attention(model)
    return model


def random_sample(lengths, seed=0, words=30, left_pad_source=True, left_pad_target=False):
    """A collated batch of sentence pairs of the given (source, target) lengths, without </s>."""
    generator = torch.Generator().manual_seed(seed)

    def ids(length):
        return torch.cat([torch.randint(4, 4 + words, (length,), generator=generator), torch.tensor([2])])

    items = [{"id": i, "source": ids(s), "target": ids(t)} for i, (s, t) in enumerate(lengths)]
    return collate(items, 1, 2, left_pad_source=left_pad_source, left_pad_target=left_pad_target)


@pytest.fixture
def tgt_dict():
    return dictionary()


@pytest.fixture
def build():
    return random_model


@pytest.fixture
def make_sample():
    return random_sample


class LargestTensor(TorchDispatchMode):
    """The size in bytes of the largest tensor that is made inside of it."""

    def __init__(self):
        super().__init__()
        self.bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        known = {a.untyped_storage().data_ptr() for a in args if isinstance(a, torch.Tensor)}
        for tensor in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.untyped_storage().data_ptr() not in known:
                self.bytes = max(self.bytes, tensor.untyped_storage().nbytes())
        return result


@pytest.fixture
def largest_tensor():
    return LargestTensor
