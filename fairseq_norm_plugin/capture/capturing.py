"""Captures maps during a forward pass: once from each wanted attention, and either from all of them or from none.

During a pass the captures are attached to the attention modules, where fairseq also keeps the state of its search.  So
only one thread at a time may run a model (:func:`one_thread`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock, RLock
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from torch import Tensor

from fairseq_norm_plugin.capture.layers import Site
from fairseq_norm_plugin.maps.block import Block

Value = TypeVar("Value")

# not stored on the modules, because a lock can neither be copied nor pickled
_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_locks_lock = Lock()


class Listener(Protocol):
    """An attention that feeds ``captures`` (capture.attention.NormAttention)."""

    site: Site
    captures: tuple[MapCapture[Any], ...]
    stream: Tensor | None  #: input of a pre-norm layer's norm in this pass, [T, B, D]; None outside of a pass
    ends_pass: bool  #: whether the pass ends here, with :class:`PassEnd`


class PassEnd(Exception):  # noqa: N818  # no error
    """Ends a forward pass after its last capture; see :func:`capturing`."""


class MapCapture(Generic[Value]):
    """Collects ``compute(block)`` for certain layers during one forward pass.

    Args:
        block: the block type (capture.layers.BLOCK_TYPES).
        layers: layer numbers, from 0.
        compute: computes from a block the value that is kept.
        needs_norms: False: ``compute`` reads ``block.alpha`` only.
        first_pass: True: the first of several passes counts (``transformer_align`` with full context runs its decoder
            a second time, not causally); False: a second pass is an error.
    """

    def __init__(
        self,
        block: str,
        layers: Sequence[int],
        compute: Callable[[Block], Value],
        needs_norms: bool = True,
        first_pass: bool = False,
    ) -> None:
        self.block = block
        self.layers = tuple(layers)
        self.needs_norms = needs_norms
        self._compute = compute
        self._first_pass = first_pass
        self._taken: dict[int, Value] = {}

    def wants(self, block: str, layer: int) -> bool:
        """Whether this capture collects the block."""
        return block == self.block and layer in self.layers

    def receive(self, layer: int, block: Block) -> None:
        """Receive the block of ``layer``; its attention calls this.

        Raises:
            RuntimeError: the layer ran twice, and ``first_pass`` is False.
        """
        if layer in self._taken:
            if self._first_pass:
                return
            raise RuntimeError(f"layer {layer} ran twice in one forward pass, so its map is ambiguous")
        self._taken[layer] = self._compute(block)

    def take(self) -> list[Value]:
        """The values collected since the last call, in the order of ``layers``.

        Raises:
            RuntimeError: a layer did not run.
        """
        missing = [layer for layer in self.layers if layer not in self._taken]
        if missing:
            raise RuntimeError(f"the forward pass captured no maps of layers {missing}; was the attention swapped?")
        taken = [self._taken[layer] for layer in self.layers]
        self._taken = {}
        return taken


@contextmanager
def one_thread(models: Iterable[Any]) -> Iterator[None]:
    """Reserve ``models`` for this thread; other threads wait.  The same thread may enter again."""
    with _locks_lock:
        locks = {id(model): _locks.setdefault(model, RLock()) for model in models}
    with ExitStack() as stack:
        for _, lock in sorted(locks.items()):  # a fixed order avoids deadlocks
            stack.enter_context(lock)
        yield


@contextmanager
def capturing(attentions: Sequence[Listener], *captures: MapCapture[Any], end_pass: bool = False) -> Iterator[None]:
    """Attach ``captures`` to the attentions of a model, and always detach them at the end.

    Every pass of the model feeds them, also in other threads; so enter :func:`one_thread` or :func:`teacher_forcing`
    first.

    Args:
        attentions: the attentions of a model, in the order of a forward pass.
        *captures: the captures.
        end_pass: end each pass after its last capture by :class:`PassEnd`, which the caller must catch; neither
            the network after it nor any higher layer is computed.
    """
    hooks = []
    for attention in attentions:
        site = attention.site
        attention.captures = tuple(c for c in captures if c.wants(site.block, site.number))
        if site.pre_norm and any(capture.needs_norms for capture in attention.captures):
            # The attention sees only its normalised input; the residual connection takes the input of the norm.
            hooks.append(site.layer_norm.register_forward_pre_hook(partial(_keep_stream, attention)))
    for attention in [attention for attention in attentions if attention.captures][-1:]:
        attention.ends_pass = end_pass
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for attention in attentions:
            attention.ends_pass = False
            attention.captures = ()
            attention.stream = None


def _keep_stream(attention: Listener, module: Any, inputs: tuple[Tensor, ...]) -> None:
    attention.stream = inputs[0]


@contextmanager
def teacher_forcing(model: Any) -> Iterator[None]:
    """Make forward passes plain causal ones, in one thread, whatever generation and training have set on the model.

    ``transformer_align`` may add a second, full-context pass for its supervised head.  BART's attention expects the
    beams of a search, which a teacher-forced batch does not have.
    """
    with one_thread([model]):
        full_context = getattr(model, "full_context_alignment", None)
        beams = {module: module.beam_size for module in model.modules() if getattr(module, "beam_size", 1) != 1}
        if full_context is not None:
            model.full_context_alignment = False
        for module in beams:
            module.beam_size = 1
        try:
            yield
        finally:
            if full_context is not None:
                model.full_context_alignment = full_context
            for module, beam_size in beams.items():
                module.beam_size = beam_size
