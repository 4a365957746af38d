"""Capture maps during a forward pass: once from each attention that is wanted, and of all of them or of none.

During a pass the captures are attached to the attention modules, where fairseq keeps state of its own search too.
Therefore one thread at a time may run a model (:func:`one_thread`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from threading import Lock, RLock
from typing import Any, Generic, Optional, Protocol, TypeVar
from weakref import WeakKeyDictionary

from torch import Tensor

from fairseq_norm_plugin.capture.layers import Site
from fairseq_norm_plugin.maps.block import Block

Value = TypeVar("Value")

# not on the modules: a lock could neither be copied nor pickled with them
_locks: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
_locks_lock = Lock()


class Listener(Protocol):
    """An attention that feeds ``captures`` (capture.attention.NormAttention)."""

    site: Site
    captures: tuple[MapCapture[Any], ...]
    stream: Optional[Tensor]  #: input of a pre-norm layer's norm in this pass, [T, B, D]; None outside of one


class MapCapture(Generic[Value]):
    """Collects ``compute(block)`` of certain layers during one forward pass.

    Args:
        block: the block type (capture.layers.BLOCK_TYPES).
        layers: layer numbers, from 0.
        compute: computes what is kept from a block.
        needs_norms: False: ``compute`` reads ``block.alpha`` only.
        first_pass: True: of several passes the first counts (``transformer_align`` with full context runs its decoder
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
        """Whether it collects this block."""
        return block == self.block and layer in self.layers

    def receive(self, layer: int, block: Block) -> None:
        """Take the block of ``layer``; its attention calls this.

        Raises:
            RuntimeError: the layer ran twice, and ``first_pass`` is False.
        """
        if layer in self._taken:
            if self._first_pass:
                return
            raise RuntimeError(f"layer {layer} ran twice in one forward pass: which of its maps is meant is unclear")
        self._taken[layer] = self._compute(block)

    def take(self) -> list[Value]:
        """What was collected since the last call, in the order of ``layers``.

        Raises:
            RuntimeError: a layer did not run.
        """
        missing = [layer for layer in self.layers if layer not in self._taken]
        if missing:
            raise RuntimeError(f"the forward pass recorded nothing of layers {missing}: is the attention swapped in?")
        taken = [self._taken[layer] for layer in self.layers]
        self._taken = {}
        return taken


@contextmanager
def one_thread(models: Iterable[Any]) -> Iterator[None]:
    """Hold ``models`` for this thread: others that want one of them wait.  The same thread may enter again."""
    with _locks_lock:
        locks = {id(model): _locks.setdefault(model, RLock()) for model in models}
    with ExitStack() as stack:
        for _, lock in sorted(locks.items()):  # in one order, lest two threads wait for each other
            stack.enter_context(lock)
        yield


@contextmanager
def capturing(attentions: Sequence[Listener], *captures: MapCapture[Any]) -> Iterator[None]:
    """Attach ``captures`` to the attentions of a model, and detach them however the block ends.

    Any pass of the model feeds them, in other threads too: enter :func:`one_thread` or :func:`teacher_forcing` first.
    """
    hooks = []
    for attention in attentions:
        site = attention.site
        attention.captures = tuple(c for c in captures if c.wants(site.block, site.number))
        if site.pre_norm and any(capture.needs_norms for capture in attention.captures):
            # The attention sees its normalised input only; the residual connection takes what the norm saw.
            hooks.append(site.layer_norm.register_forward_pre_hook(partial(_keep_stream, attention)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()
        for attention in attentions:
            attention.captures = ()
            attention.stream = None


def _keep_stream(attention: Listener, module: Any, inputs: tuple[Tensor, ...]) -> None:
    attention.stream = inputs[0]


@contextmanager
def teacher_forcing(model: Any) -> Iterator[None]:
    """Make forward passes plain causal ones, whatever generation and training set on the model, and in one thread.

    ``transformer_align`` may add a second, full-context pass for its supervised head; BART's attention expects the
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
