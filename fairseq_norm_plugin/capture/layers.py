"""fairseq's models: built of a checkpoint, in 16 or 32 bits; and their layers as blocks (formulas/block.py).

fairseq reads a whole checkpoint into memory, fills a new model with random numbers, and copies.  Here a model is built
without random numbers, and its parameters are copied from the mapped file, in their type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from fairseq import checkpoint_utils
from fairseq.models import ARCH_MODEL_REGISTRY
from fairseq.models.multilingual_transformer import MultilingualTransformerModel
from fairseq.modules import MultiheadAttention
from fairseq.modules.transformer_layer import (
    TransformerDecoderLayer,
    TransformerDecoderLayerBase,
    TransformerEncoderLayer,
    TransformerEncoderLayerBase,
)
from omegaconf import DictConfig
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from alignment_eval.errors import InputError, printable
from fairseq_norm_plugin.checkpoints.read import NOT_SAVED, fairseq_errors
from fairseq_norm_plugin.formulas.block import BlockWeights, FeedForward, Norm

ENCODER_SELF, DECODER_SELF, DECODER_CROSS = "encoder.self", "decoder.self", "decoder.cross"
#: Block types, in the order of a forward pass.
BLOCK_TYPES = (ENCODER_SELF, DECODER_SELF, DECODER_CROSS)

_LAYER_TYPES = {
    "encoder": (TransformerEncoderLayerBase, TransformerEncoderLayer),
    "decoder": (TransformerDecoderLayerBase, TransformerDecoderLayer),
}
# NormFormer's options; they compute other sums than the maps' equations
_CHANGED_SUMS = {
    "attn_ln": "--scale-attn",
    "c_attn": "--scale-heads",
    "ffn_layernorm": "--scale-fc",
    "w_resid": "--scale-resids",
}
#: The parts of a layer and of its attention that the maps' equations know; and the copies that fairseq 0.12.2 makes of
#: them.  A fork that has more computes something else.
_KNOWN = re.compile(
    r"((self|encoder)_attn\.([qkv]_proj|out_proj)|((self|encoder)_attn|final)_layer_norm|fc[12])\..*"
    r"|(in_proj|out_proj|fc[12])_(weight|bias)"
)
_NORMS = ("LayerNorm", "FusedLayerNorm", "Fp32LayerNorm")
#: What fills a tensor, of tensors and of torch.nn.init.
_FILLS = frozenset(
    (
        *("uniform_", "normal_", "fill_", "zero_", "constant_", "ones_", "zeros_", "trunc_normal_"),
        *("xavier_uniform_", "xavier_normal_", "kaiming_uniform_", "kaiming_normal_"),
    )
)
#: The matrices that have a row for each token of a side.
_EMBEDDINGS = {"encoder.embed_tokens.weight": "source", "decoder.embed_tokens.weight": "target"}


# ---- building


def build_model(
    task: Any,
    state: dict[str, Any],
    name: str,
    dtype: str = "float32",
    see: Callable[[str, Tensor], object] | None = None,
) -> nn.Module:
    """Build the model of a checkpoint, in evaluation mode; its weights are taken out of ``state``.

    ``see`` is called with the name and the values of each entry of the model's state dictionary, in the order of the
    names, as they are in the file.

    Raises:
        InputError: fairseq cannot build it, or its parts do not fit dictionaries or options.
    """
    cfg: DictConfig = state["cfg"].model
    weights = state.pop("model")
    # fairseq does not say so where both sides share them
    _check_sizes({entry: len(getattr(task, f"{side}_dictionary")) for entry, side in _EMBEDDINGS.items()}, weights)
    with fairseq_errors(f"{name}: fairseq cannot build the model of its options", NOT_SAVED), _Unfilled():
        check_architecture(cfg)
        model: nn.Module = task.build_model(cfg, from_checkpoint=True)
    model.upgrade_state_dict(weights)  # type: ignore[operator]
    weights = checkpoint_utils.prune_state_dict(weights, cfg)
    if see is not None:
        for entry in sorted(weights):
            see(entry, weights[entry])
    model.to(getattr(torch, dtype))  # before they have numbers, so that no two copies of all are in memory
    try:
        nn.Module.load_state_dict(model, weights, strict=True)
    except (RuntimeError, KeyError) as error:  # fairseq 0.12.2 looks some up itself
        reasons = [line.strip() for line in str(error).splitlines() if line.startswith("\t")]
        raise InputError(
            f"{name}: its parameters do not fit the dictionaries or the options of the model "
            f"({printable(next(iter(reasons), str(error)), 120)}): expected all of its parts, and its own dictionaries"
        ) from error
    return model.eval()


class _Unfilled(TorchFunctionMode):
    """Parameters that are made inside are not filled, so their memory is not touched."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        named = kwargs or {}
        filled = args[0] if args else named.get("tensor")  # torch.nn.init names it
        if getattr(func, "__name__", "") in _FILLS and isinstance(filled, nn.Parameter):
            return filled
        return func(*args, **named)


def check_architecture(cfg: Any) -> None:
    """Refuse the options of a model that has several Transformers."""
    architecture = ARCH_MODEL_REGISTRY.get(str(getattr(cfg, "arch", None)))
    if architecture is not None and issubclass(architecture, MultilingualTransformerModel):
        raise InputError(
            f"model {cfg.arch} has a Transformer for each pair, and gives no maps; translate with --task "
            f"multilingual_translation; for maps train with --task translation_multi_simple_epoch"
        )


def check_vocabulary(model: nn.Module) -> None:
    """Make ``model`` refuse weights that belong to other dictionaries than its own, with a clear message."""

    def compare(model: nn.Module, state: Mapping[str, Any], prefix: str, *_: Any) -> None:
        own = model.state_dict()
        _check_sizes({name: len(own[name]) for name in _EMBEDDINGS if name in own}, state, prefix)

    model.register_load_state_dict_pre_hook(compare)  # type: ignore[no-untyped-call]


def _check_sizes(own: Mapping[str, int], trained: Mapping[str, Any], prefix: str = "") -> None:
    """Check that embeddings have as many rows as the task has tokens, ``own``."""
    for name, size in own.items():
        embeddings = trained.get(prefix + name)
        if embeddings is not None and len(embeddings) != size:
            side = _EMBEDDINGS[name]
            raise InputError(
                f"the checkpoint has {len(embeddings)} {side} tokens, but the task has {size}; give the dictionaries, "
                f"languages and task of the training (multilingual tasks add a token per language, docs/models.md)"
            )


# ---- layers


@dataclass(frozen=True, eq=False)
class Site:
    """The place of an attention: its block type, its layer's number (fairseq's, from 0) and the layer."""

    block: str
    number: int
    layer: Any
    model: str

    @property
    def attention(self) -> Any:
        """The attention module."""
        return self.layer.encoder_attn if self.block == DECODER_CROSS else self.layer.self_attn

    @property
    def layer_norm(self) -> Any:
        """The layer norm of the attention: after its residual connection, or before it all (:attr:`pre_norm`)."""
        return self.layer.encoder_attn_layer_norm if self.block == DECODER_CROSS else self.layer.self_attn_layer_norm

    @property
    def pre_norm(self) -> bool:
        """Whether layer norms come before attention and network (``--encoder-normalize-before``, …)."""
        return bool(self.layer.normalize_before)

    def __str__(self) -> str:
        return f"model {self.model}, {self.block.partition('.')[0]} layer {self.number}"

    def problem(self) -> str | None:
        """Why the maps' equations do not hold for this block; None if they do."""
        layer, stack = self.layer, self.block.partition(".")[0]
        if type(layer) not in _LAYER_TYPES[stack]:
            return (
                f"the layer is a {type(layer).__name__}, but maps need fairseq's "
                f"Transformer{stack.capitalize()}Layer (recurrent and convolutional {stack}s have no such attention)"
            )
        for attribute, option in _CHANGED_SUMS.items():
            if getattr(layer, attribute, None) is not None:
                return f"the model was trained with {option}, which the maps do not support"
        if getattr(layer, "cross_self_attention", False):
            return "the model was trained with --cross-self-attention, so it has no separate encoder-decoder attention"
        attention = self.attention
        if attention is None:
            return "the layer has no encoder-decoder attention (--no-cross-attention)"
        own = isinstance(attention, MultiheadAttention)
        if not own or type(attention).__name__ not in ("MultiheadAttention", "NormAttention"):
            return f"the attention is a {type(attention).__name__}, but maps need fairseq's MultiheadAttention"
        if attention.bias_k is not None or attention.add_zero_attn:
            return "the attention adds a key that belongs to no source token (add_bias_kv, add_zero_attn)"
        if getattr(attention, "use_xformers", False):
            return "the attention runs in xFormers (--…-xformers-att-config), which does not give weights"
        if not isinstance(attention.out_proj, nn.Linear):
            return (
                f"the output projection is a {type(attention.out_proj).__name__} without a weight matrix; give the "
                f"checkpoint from before quantisation"
            )
        # what a fork of fairseq has changed
        other = {name: parameter for name, parameter in layer.named_parameters() if not _KNOWN.fullmatch(name)}
        network = (getattr(layer, name, None) for name in ("fc1", "fc2"))
        sizes = [(part.out_features, part.in_features) if isinstance(part, nn.Linear) else (0, 0) for part in network]
        width, hidden = sizes[1]
        if hidden and (sizes[0] == (2 * hidden, width) or any(of.shape == (hidden, width) for of in other.values())):
            return "the feed-forward network is gated (SwiGLU, GEGLU), but maps need one of two matrices, fc1 and fc2"
        if other:
            names = ", ".join(list(other)[:3])
            return f"the layer has parameters that fairseq's has not ({names}), so maps would be wrong"
        if not hidden or sizes[0][0] != hidden:
            return "the feed-forward network is not fairseq's, two matrices fc1 and fc2, of which one reads the other"
        for name in ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"):
            norm = getattr(layer, name, None)
            if norm is not None and type(norm).__name__ not in _NORMS:
                return f"{name} is a {type(norm).__name__}, but maps need a LayerNorm"
        return None

    def parameters(self) -> list[Tensor]:
        """The parameters that :meth:`weights` reads."""
        layer = self.layer
        modules = [self.attention.out_proj, self.layer_norm, layer.fc1, layer.fc2, layer.final_layer_norm]
        return [parameter for module in modules for parameter in module.parameters()]

    def weights(self) -> BlockWeights:
        """The block's parameters, at least in float32; those of the network become so when a kind needs them."""
        layer, projection = self.layer, self.attention.out_proj
        feed_forward = None
        # In a decoder layer with encoder-decoder attention, the network follows that attention, not self-attention.
        if self.block != DECODER_SELF or layer.encoder_attn is None:
            final = self._norm(layer.final_layer_norm)
            feed_forward = FeedForward(
                w_1=layer.fc1.weight.detach(),
                b_1=layer.fc1.bias.detach(),
                w_2=layer.fc2.weight.detach(),
                b_2=layer.fc2.bias.detach(),
                activation=layer.activation_fn,
                norm=final if self.pre_norm else None,
                final_norm=None if self.pre_norm else final,
            )
        return BlockWeights(
            w_o=at_least_float32(projection.weight),
            b_o=None if projection.bias is None else at_least_float32(projection.bias),
            heads=self.attention.num_heads,
            cross=self.block == DECODER_CROSS,
            norm=None if self.pre_norm else self._norm(self.layer_norm),
            feed_forward=feed_forward,
        )

    def _norm(self, module: nn.Module) -> Norm:
        weight, bias, eps = (getattr(module, name, None) for name in ("weight", "bias", "eps"))
        if not (isinstance(weight, Tensor) and isinstance(bias, Tensor) and isinstance(eps, float)):
            raise InputError(
                f"{self}: the layer norm is a {type(module).__name__} without weight, bias and eps, so only kinds "
                f"attn_w and attn_n can be computed"
            )
        return Norm(at_least_float32(weight), at_least_float32(bias), eps)


def sites(model: Any) -> Iterator[Site]:
    """The places of all attentions of a fairseq Transformer, by stack and layer."""
    name = type(model).__name__
    for number, layer in enumerate(_layers(model, "encoder")):
        yield Site(ENCODER_SELF, number, layer, name)
    for number, layer in enumerate(_layers(model, "decoder")):
        yield Site(DECODER_SELF, number, layer, name)
        yield Site(DECODER_CROSS, number, layer, name)


def _layers(model: Any, stack: str) -> list[Any]:
    module = getattr(model, stack, None)
    layers = getattr(getattr(module, "sentence_encoder", module), "layers", None)  # RoBERTa's are one level deeper
    # By index, because in training an iteration over layers with LayerDrop skips some of them.
    return [] if layers is None else [layers[number] for number in range(len(layers))]


def mixing_positions(type_: str, real: Tensor) -> Tensor:
    """The positions of a block type's maps that have something to mix, bool [B, T]: they see more than themselves.

    ``real`` are the target positions that are not padding, bool [B, T].
    """
    if type_ == DECODER_SELF:  # the first position sees only itself
        return real & (real.cumsum(1) > 1)
    return real if type_ == DECODER_CROSS else real & (real.sum(1, keepdim=True) > 1)


def at_least_float32(tensor: Tensor) -> Tensor:
    """The tensor at least in float32, because maps of fp16 models are computed in float32."""
    tensor = tensor.detach()
    return tensor if tensor.dtype == torch.float64 else tensor.float()
