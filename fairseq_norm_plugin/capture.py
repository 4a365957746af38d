"""Maps of a forward pass: what to take from each attention, taken once and complete or not at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar

from torch import Tensor

if TYPE_CHECKING:
    from fairseq_norm_plugin.attention import NormAttention

Value = TypeVar("Value")


class MapCapture(Generic[Value]):
    """Collects ``compute(α, factor)`` of the wanted layers over one forward pass.

    Args:
        layers: layer numbers, from 0.
        compute: from α [B, H, T, S] and the Gram factor [B, S, H, H] (None unless ``needs_norms``) to what is kept.
        needs_norms: whether the Gram factor is needed.
    """

    def __init__(
        self, layers: Sequence[int], compute: Callable[[Tensor, Optional[Tensor]], Value], needs_norms: bool
    ) -> None:
        self.layers = tuple(layers)
        self.needs_norms = needs_norms
        self._compute = compute
        self._taken: dict[int, Value] = {}

    def receive(self, layer: int, alpha: Tensor, factor: Optional[Tensor]) -> None:
        """Called by the attention of ``layer``, once a pass."""
        if layer in self._taken:
            raise RuntimeError(f"layer {layer} ran twice in one forward pass: which of its maps is meant is unclear")
        self._taken[layer] = self._compute(alpha, factor)

    def take(self) -> list[Value]:
        """What was collected since the last call, in the order of ``layers``; all layers or an error."""
        missing = [layer for layer in self.layers if layer not in self._taken]
        if missing:
            raise RuntimeError(f"the forward pass recorded nothing of layers {missing}: is the attention swapped in?")
        taken = [self._taken[layer] for layer in self.layers]
        self._taken = {}
        return taken


@contextmanager
def capturing(attentions: Sequence[NormAttention], *captures: MapCapture[Any]) -> Iterator[None]:
    """Attach ``captures`` to the attentions of a model; detached again however the block ends."""
    for attention in attentions:
        attention.captures = captures
    try:
        yield
    finally:
        for attention in attentions:
            attention.captures = ()


@contextmanager
def teacher_forcing(model: Any) -> Iterator[None]:
    """Make a forward pass the plain causal one, whatever generation and training set on the model.

    ``transformer_align`` may add a second, full-context pass for its supervised head; BART's attention folds
    beams that a teacher-forced batch does not have.
    """
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
