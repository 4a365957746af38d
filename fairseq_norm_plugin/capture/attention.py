"""fairseq's attention with captures, the function that swaps it into a model, and passes that captures listen to.

The swap only changes the class of the attention modules.  Parameters, buffers and the forward pass are fairseq's own,
so outputs are bit-identical and checkpoints do not change.  Self-attention runs in torch's fused kernel, which gives no
weights of single heads; captures get these from the logits, which are computed a second time.

A capture takes its maps once from each wanted attention, and either from all of them or from none.  During a pass the
captures are attached to the modules, where fairseq also keeps the state of its search.  So only one thread at a time
may run a model (:func:`in_one_thread`); others may run other models meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from enum import IntEnum
from threading import Lock, RLock
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

import torch
from fairseq.models.nat import FairseqNATModel
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from alignment_eval.errors import InputError
from fairseq_norm_plugin.capture.layers import DECODER_CROSS, Site, at_least_float32, sites
from fairseq_norm_plugin.formulas.block import Block, BlockWeights, gram_factor

Value = TypeVar("Value")

_FACTOR_KEY = "norm_factor"  # in the attention's incremental buffer, whose every entry fairseq reorders on dim 0
#: The lock of each model, held by the thread that runs it.  Models are copied and pickled, which locks cannot be.
_LOCKS: WeakKeyDictionary[nn.Module, Any] = WeakKeyDictionary()
_MAKING = Lock()


class PassEnd(Exception):  # noqa: N818  # no error
    """Ends a forward pass after its last capture; see :func:`capturing`."""


class Parts(IntEnum):
    """What is computed of a block: its weights; its values, too; or its output and residual connection as well."""

    WEIGHTS = 0
    VALUES = 1
    WHOLE = 2


@dataclass(eq=False)
class MapCapture(Generic[Value]):
    """Collects ``compute(block)`` for the ``layers`` of a block type during one forward pass.

    ``compute`` reads only the ``parts`` of the block.  With ``first_pass``, the first of several passes
    counts (``transformer_align`` with full context runs its decoder a second time, not causally); else a second pass
    is an error.
    """

    block: str
    layers: Sequence[int]
    compute: Callable[[Block], Value]
    parts: Parts = Parts.WHOLE
    first_pass: bool = False
    _taken: dict[int, Value] = field(default_factory=dict)

    def receive(self, layer: int, block: Block) -> None:
        """Receive the block of ``layer``; its attention calls this."""
        if layer in self._taken:
            if self.first_pass:
                return
            raise RuntimeError(f"layer {layer} ran twice in one forward pass, so its map is ambiguous")
        self._taken[layer] = self.compute(block)

    def take(self) -> list[Value]:
        """The values collected since the last call, in the order of ``layers``."""
        missing = [layer for layer in self.layers if layer not in self._taken]
        if missing:
            raise RuntimeError(f"the forward pass captured no maps of layers {missing}; was the attention swapped?")
        taken = [self._taken[layer] for layer in self.layers]
        self._taken = {}
        return taken


class NormAttention(MultiheadAttention):  # type: ignore[misc]  # fairseq is untyped
    """fairseq's attention, which passes each forward pass to its captures as a block (formulas.block.Block)."""

    site: Site
    captures: tuple[MapCapture[Any], ...]
    stream: Tensor | None  #: input of a pre-norm layer's norm in this pass, [T, B, D]; None outside of a pass
    ends_pass: bool  #: whether the pass ends here, with :class:`PassEnd`
    _weights: tuple[tuple[Any, ...], BlockWeights] | None

    def forward(
        self, query: Tensor, key: Tensor | None, value: Tensor | None, **options: Any
    ) -> tuple[Tensor, Tensor | None]:
        """fairseq's forward with its ``options``; it also feeds ``captures``."""
        if not self.captures or options.get("before_softmax"):
            output, weights = super().forward(query, key, value, **options)
            return output, weights
        state = options.get("incremental_state")
        fused = state is None and not options.get("static_kv") and not self.skip_embed_dim_check
        given = options if fused else {**options, "need_weights": True, "need_head_weights": True}
        unread = state is None and self.ends_pass and self.parts < Parts.WHOLE  # nobody reads the output
        values: list[Tensor] = []
        output, weights = query.new_empty(0, 0), None
        if not unread:
            seen = state is None and not fused and self.parts > Parts.WEIGHTS
            hook = self.v_proj.register_forward_hook(lambda *of_call: values.append(of_call[-1])) if seen else None
            with hook or nullcontext():
                output, weights = super().forward(query, key, value, **given)
        if fused or unread:
            alpha, of_heads = self._unfused(query, key, value, **options)
            values.append(of_heads)
        else:
            alpha = weights.transpose(0, 1)  # [B, H, T, S]; of fairseq's softmax, in float32 for every dtype
        block = self._block(alpha, query, values, output, options)
        for capture in self.captures:
            capture.receive(self.site.number, block)
        if self.ends_pass:
            raise PassEnd
        if fused or options.get("need_head_weights"):
            return output, weights
        return output, weights.mean(dim=0) if options.get("need_weights", True) else None

    @property
    def parts(self) -> Parts:
        """What the captures of this pass read of the block."""
        return max(capture.parts for capture in self.captures)

    def _unfused(self, *inputs: Tensor | None, **options: Any) -> tuple[Tensor, Tensor]:
        """The weights of each head, [B, H, T, S], and the values, [S, B, H·d], which the fused kernel does not give.

        A position that sees nothing (padding before a causal sentence) has weights 0, as in the kernel.
        """
        before: bool = self.skip_embed_dim_check  # type: ignore[has-type]
        self.skip_embed_dim_check = True  # fairseq's switch between torch's fused attention and its own
        try:
            logits, values = super().forward(*inputs, **{**options, "before_softmax": True})
        finally:
            self.skip_embed_dim_check = before
        logits = at_least_float32(logits).view(-1, self.num_heads, *logits.shape[1:])
        blind = logits.isneginf().all(dim=-1, keepdim=True)
        alpha = torch.softmax(logits, dim=-1).masked_fill(blind, 0.0)
        return alpha, values.transpose(0, 1).reshape(values.size(1), -1, self.embed_dim)

    def _block(
        self, alpha: Tensor, query: Tensor, projected: Sequence[Tensor], output: Tensor, options: dict[str, Any]
    ) -> Block:
        state, padding, factor = options.get("incremental_state"), options.get("key_padding_mask"), None
        if self.parts == Parts.WEIGHTS:
            values = alpha.new_empty(alpha.size(0), 0)
        elif state is None:
            values = projected[-1].view(*projected[-1].shape[:-1], self.num_heads, self.head_dim).transpose(0, 1)
        else:
            buffer = self._get_input_buffer(state)
            values = buffer["prev_value"].transpose(1, 2)  # [B, H, S, d] → [B, S, H, d]
            if _FACTOR_KEY not in buffer:  # it depends on the source only, so it is built once per sentence
                factor = gram_factor(values, self.block_weights().gram_basis, _real(padding, values))
                buffer[_FACTOR_KEY] = factor.movedim(1, -1)  # [B, H, H, S]: its memory layout, kept by reordering
                self._set_input_buffer(state, buffer)
            factor = _share_values(buffer[_FACTOR_KEY], alpha.size(0)).movedim(-1, 1)
        weights, real = self.block_weights(), _real(padding, values)
        parts = _share_values(values, alpha.size(0)), query if self.stream is None else self.stream, output
        values, residual, output = map(at_least_float32, parts)
        alpha, residual, output = alpha.to(output.dtype), residual.transpose(0, 1), output.transpose(0, 1)
        return Block(weights, alpha, values, residual, output, factor, real)

    def listen(self, captures: Sequence[MapCapture[Any]] = (), ends_pass: bool = False) -> None:
        """Pass the next forward passes to ``captures``, by default to none."""
        self.captures, self.ends_pass, self.stream = tuple(captures), ends_pass, None

    def keep_stream(self, _norm: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        """Keep the input of a pre-norm layer's norm; a hook of that norm."""
        self.stream = inputs[0]

    def train(self, mode: bool = True) -> NormAttention:
        """torch's ``train``; training mode discards what was computed from the parameters."""
        if mode:
            self._weights = None
        super().train(mode)
        return self

    def block_weights(self) -> BlockWeights:
        """The block's parameters and what is computed from them, cached until a parameter changes.

        Optimisers that write to ``parameter.data``, like fairseq's, do not change its version.  So nothing is cached in
        training mode, and training mode clears the cache.
        """
        if self.training:
            return self.site.weights()
        version = tuple((p.data_ptr(), p._version, p.dtype, p.device) for p in self.site.parameters())
        if self._weights is None or self._weights[0] != version:
            self._weights = (version, self.site.weights())
        return self._weights[1]


def _real(padding: Tensor | None, values: Tensor) -> Tensor | None:
    """Which positions of ``values`` [B, S, …] are not padding, bool [B, S].

    None: unknown (BART's search shares values among beams), or to be computed alike (a GPU would wait for the number).
    """
    if padding is None or padding.shape != values.shape[:2] or padding.device.type != "cpu":
        return None
    return ~padding.bool()


def _share_values(values: Tensor, batch: int) -> Tensor:
    """Repeat ``values`` if several hypotheses share the values of one sentence (BART's beam-wise attention)."""
    return values if values.size(0) == batch else values.repeat_interleave(batch // values.size(0), dim=0)


def swap_attention(model: nn.Module, required: str = DECODER_CROSS) -> None:
    """Turn the attention modules of ``model``, a fairseq Transformer, into :class:`NormAttention`, in place.

    ``required`` is the block type that every layer of its stack must have.  Other blocks that the maps' equations do
    not cover stay unchanged; kinds that need them are refused later.
    """
    name = type(model).__name__
    if isinstance(model, FairseqNATModel):
        raise InputError(f"model {name} decodes non-autoregressively; maps need a left-to-right Transformer decoder")
    found = list(sites(model))
    for site in found:
        if getattr(site.layer, "can_use_fastpath", False):
            # fairseq 0.12.2 lets torch fuse an encoder layer, which calls no attention; with torch >= 1.13 that fails
            # where a batch has padding ("Mask Type should be defined")
            site.layer.can_use_fastpath = False
    if not any(site.block == required for site in found):
        stack, kind = required.split(".")
        what = "encoder-decoder Transformer" if kind == "cross" else "Transformer encoder"
        raise InputError(f"model {name} has no {stack} layers; maps need a fairseq {what} (--arch transformer…)")
    problems = [site.problem() for site in found]
    for site, problem in zip(found, problems):
        if problem and site.block == required:
            raise InputError(f"{site}: {problem}")
    for attention, site in [(site.attention, site) for site, problem in zip(found, problems) if not problem]:
        attention.__class__ = NormAttention
        attention.site = site
        attention.listen()
        attention._weights = None


def norm_attentions(model: nn.Module, *blocks: str) -> list[NormAttention]:
    """The swapped attention modules of ``model``, by layer: those of block types ``blocks``, or all."""
    found = [module for module in model.modules() if isinstance(module, NormAttention)]
    known = {attention.site.block for attention in found}
    if blocks and not found:
        raise InputError(
            f"model {type(model).__name__} was not built by a norm task; load it with one, such as --task "
            f"translation_norm"
        )
    for block in blocks:
        if block not in known:
            raise InputError(
                f"model {type(model).__name__} has no {block} blocks with maps; it has {', '.join(sorted(known))}"
            )
    return [attention for attention in found if not blocks or attention.site.block in blocks]


@contextmanager
def capturing(
    attentions: Sequence[NormAttention], *captures: MapCapture[Any], end_pass: bool = False
) -> Iterator[None]:
    """Attach ``captures`` to the attentions of a model (in the order of a pass), and always detach them at the end.

    Those that are attached already stay; their passes do not end early.

    Every pass of the model feeds them, also in other threads; so enter :func:`in_one_thread` or :func:`teacher_forcing`
    first.  With ``end_pass`` each pass ends after its last capture by :class:`PassEnd`, which the caller must catch;
    neither the network after it nor any higher layer is computed.
    """
    wanted = [
        (attention, own)
        for attention in attentions
        if (own := [c for c in captures if c.block == attention.site.block and attention.site.number in c.layers])
    ]
    with ExitStack() as stack:
        for number, (attention, own) in enumerate(wanted, 1):
            others = attention.captures
            stack.callback(attention.listen, others)
            attention.listen([*others, *own], end_pass and number == len(wanted))
            if attention.parts == Parts.WHOLE and attention.site.pre_norm:
                # The attention sees only its normalised input; the residual connection takes the input of the norm.
                stack.enter_context(attention.site.layer_norm.register_forward_pre_hook(attention.keep_stream))
        yield


@contextmanager
def in_one_thread(models: Iterable[nn.Module]) -> Iterator[None]:
    """Wait until no other thread runs one of the ``models``, and let none begin; the same thread may enter again.

    Locks are taken in one order, so that two threads never wait for each other.
    """
    with _MAKING:
        locks = [_LOCKS.setdefault(model, RLock()) for model in models]
    with ExitStack() as stack:
        for lock in sorted(locks, key=id):
            stack.enter_context(lock)
        yield


@contextmanager
def teacher_forcing(model: Any) -> Iterator[None]:
    """Make forward passes plain causal ones, in one thread, whatever generation and training have set on the model.

    ``transformer_align`` may add a second, full-context pass for its supervised head.  BART's attention expects the
    beams of a search, which a teacher-forced batch does not have.
    """
    plain = [(model, "full_context_alignment", False), *((module, "beam_size", 1) for module in model.modules())]
    with in_one_thread([model]), ExitStack() as stack:
        for owner, name, value in plain:
            if (former := getattr(owner, name, value)) != value:
                stack.callback(setattr, owner, name, former)
                setattr(owner, name, value)
        yield
