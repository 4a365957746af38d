"""fairseq plugin (``--user-dir``): norm-weighted encoder-decoder attention maps of any trained Transformer.

- ``load``: load a translation model, to align, translate, and read maps with (``NormModel``).
- ``load_masked_lm``: load BERT or RoBERTa (``MaskedLM``), to read the maps of its blocks (``BlockMaps``).
- ``AlignBatch``: align batches of a data set in a Ray cluster, or wherever a batch is a table.
- ``Markup``: take inline tags off lines, and put them onto aligned translations.
- ``register``: register the plugin with fairseq, in a program that calls fairseq itself.

They are imported when they are used, because torch and fairseq take seconds.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 10):  # noqa: UP036  # pip refuses it, but --user-dir may name a clone
    sys.exit(f"fairseq_norm_plugin: this is Python {sys.version.split()[0]}: expected 3.10 or newer")

if TYPE_CHECKING:
    from alignment_eval.transfer.pairs import Markup
    from fairseq_norm_plugin.align.batch import AlignBatch
    from fairseq_norm_plugin.model.inspection import BlockMaps, MaskedLM, load_masked_lm
    from fairseq_norm_plugin.model.load import load
    from fairseq_norm_plugin.model.norm_model import NormModel

__all__ = ["AlignBatch", "BlockMaps", "Markup", "MaskedLM", "NormModel", "load", "load_masked_lm", "register"]
_MODULES = {
    "AlignBatch": f"{__name__}.align.batch",
    "Markup": "alignment_eval.transfer.pairs",
    "NormModel": f"{__name__}.model.norm_model",
    "load": f"{__name__}.model.load",
}


def register() -> None:
    """Register the plugin with fairseq: its tasks, models and criterion.

    ``--user-dir`` does so; a program that calls fairseq itself does it once.

    Raises:
        InputError: torch or fairseq is missing, or does not serve.
    """
    import_module(f"{__name__}.tasks")


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES.get(name, f"{__name__}.model.inspection")), name)


def __dir__() -> list[str]:
    return __all__
