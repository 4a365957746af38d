"""What identifies a run: model, data, and every option that changes the numbers."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Optional

import torch
from torch import Tensor, nn

# Options of generation that change no map.
_SILENT_OPTIONS = {"_name", "print_alignment", "print_step", "no_beamable_mm"}


def signature_hash(signature: Mapping[str, Any]) -> str:
    """Hash of a signature."""
    return hashlib.blake2b(json.dumps(signature, sort_keys=True).encode(), digest_size=8).hexdigest()


def generation_options(args: Any) -> dict[str, Any]:
    """The generation options of a run (fairseq's GenerationConfig in any of its forms), as JSON knows them."""
    if dataclasses.is_dataclass(args) and not isinstance(args, type):
        options = dataclasses.asdict(args)
    else:
        options = dict(args.items() if hasattr(args, "items") else vars(args))
    return {name: _plain(value) for name, value in sorted(options.items()) if name not in _SILENT_OPTIONS}


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, float, bool, type(None))) else str(value)


def model_hash(models: Sequence[nn.Module]) -> str:
    """Hash of all parameters and buffers, in their dtype."""
    digest = hashlib.blake2b(digest_size=8)
    for model in models:
        for name, tensor in sorted(model.state_dict().items()):
            if name.endswith("._float_tensor"):
                continue  # fairseq 0.12.2 keeps one float of uninitialised memory with sinusoidal positions
            digest.update(name.encode())
            digest.update(_bytes(tensor))
    return digest.hexdigest()


def dictionary_hash(*dictionaries: Any) -> str:
    """Hash of the symbols of fairseq dictionaries, by id."""
    digest = hashlib.blake2b(digest_size=8)
    for dictionary in dictionaries:
        digest.update("\n".join(dictionary.symbols).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _bytes(tensor: Tensor) -> bytes:
    data = tensor.detach().cpu().contiguous().flatten()
    return data.view(torch.uint8).numpy().tobytes() if data.numel() else b""


def data_hash(directory: str, subset: str, languages: Sequence[Optional[str]]) -> str:
    """Hash of a subset's files (``subset.src-tgt.lang…``, or ``subset.*`` without languages) and dictionaries."""
    digest = hashlib.blake2b(digest_size=8)
    root = Path(directory)
    source, target = languages
    if source is None:  # text of one language
        patterns = (f"{subset}.bin", f"{subset}.idx", "dict.txt")
    else:
        patterns = (f"{subset}.{source}-{target}.*", f"{subset}.{target}-{source}.*", "dict.*.txt")
    for file in sorted({file for pattern in patterns for file in root.glob(pattern)}):
        digest.update(file.name.encode())
        with file.open("rb") as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
    return digest.hexdigest()
