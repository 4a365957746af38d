"""What identifies a model and its data: hashes of parameters, architecture, dictionaries and files."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from fairseq.modules import FairseqDropout
from torch import Tensor, nn

from alignment_eval.reading import blocks

#: fairseq 0.12.2 saves a second copy of each encoder layer's parameters.  It makes this copy again when it loads, and
#: fairseq's main branch (ve-fairseq) refuses it as unexpected.
FAST_PATH_COPY = re.compile(r"encoder\.layers\.\d+\.(in_proj|out_proj|fc1|fc2)_(weight|bias)$")
#: Attributes of fairseq's modules that change no number outside of training: dropout, quantisation, limits of lengths
#: (the task's limits are in the signature), and switches of generation and tracing.
_SILENT_ATTRIBUTES = re.compile(
    r"train|training|.*drop.*|quant_noise.*|max_.*|need_attn|beam_size|onnx_trace|skip_embed_dim_check|num_updates"
)
#: Numbers of a parameter that are hashed at once.
_CHUNK = 1 << 24


def is_unread(name: str) -> bool:
    """Whether nothing reads this entry of a model's state: those copies, and a float of uninitialised memory."""
    return name.endswith("._float_tensor") or FAST_PATH_COPY.search(name) is not None


class ParameterHash:
    """A running hash of the parameters and buffers of models, in ``dtype``; None: each in its own.

    In float32 the parameters of a checkpoint have the same hash whatever type they are computed in later.
    """

    def __init__(self, dtype: torch.dtype | None = None) -> None:
        self._digest = hashlib.blake2b(digest_size=8)
        self._dtype = dtype

    def add(self, name: str, tensor: Tensor) -> None:
        """Add an entry of a state dictionary; add the entries of a model in the order of their names."""
        if is_unread(name):
            return
        self._digest.update(name.encode())
        for chunk in torch.split(tensor.detach().flatten(), _CHUNK):
            chunk = chunk.to(self._dtype) if self._dtype and chunk.is_floating_point() else chunk
            if chunk.numel():
                self._digest.update(chunk.cpu().contiguous().view(torch.uint8).numpy().data)

    def add_model(self, model: nn.Module) -> None:
        """Add all parameters and buffers of a model."""
        for name, tensor in sorted(model.state_dict().items()):
            self.add(name, tensor)

    def watch(self, model: Any) -> None:
        """Add those of a model as soon as fairseq reads them, which makes 16 bits of them only later."""
        model.register_load_state_dict_post_hook(lambda read, _: self.add_model(read))

    @property
    def whole(self) -> str:
        """The hash of what was added so far."""
        return self._digest.hexdigest()


def model_hash(models: Sequence[nn.Module]) -> str:
    """Hash of all parameters and buffers, in their dtype."""
    hashed = ParameterHash()
    for model in models:
        hashed.add_model(model)
    return hashed.whole


def architecture_hash(models: Sequence[nn.Module]) -> str:
    """Hash of how models use their parameters: numbers of heads, scales, activations, order of layer norms.

    It covers the plain attributes of the modules.  The options would not do, because they also hold paths and training.
    """
    digest = hashlib.blake2b(digest_size=8)
    for model in models:
        for name, module in model.named_modules():
            if not isinstance(module, (FairseqDropout, nn.ModuleList)):  # these act in training only
                facts = [name, type(module).__name__, dict(sorted(_facts(module)))]
                digest.update(json.dumps(facts).encode())
    return digest.hexdigest()


def _facts(module: nn.Module) -> Iterator[tuple[str, Any]]:
    for name, value in vars(module).items():
        if not (name.startswith("_") or _SILENT_ATTRIBUTES.fullmatch(name)):
            if isinstance(value, (bool, int, float, str)):
                yield name, value
            elif callable(value) and not isinstance(value, nn.Module):
                yield name, getattr(value, "__name__", type(value).__name__)  # an activation


def dictionary_hash(*dictionaries: Any) -> str:
    """Hash of the symbols of fairseq dictionaries, by id."""
    digest = hashlib.blake2b(digest_size=8)
    for dictionary in dictionaries:
        digest.update("\n".join(dictionary.symbols).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def data_hash(directory: str, subset: str, languages: Sequence[str | None]) -> str:
    """Hash of a subset's files (``subset.src-tgt.lang…``, or ``subset.*`` without languages) and dictionaries."""
    digest = hashlib.blake2b(digest_size=8)
    source, target = languages
    patterns = [f"{subset}.{source}-{target}.*", f"{subset}.{target}-{source}.*", "dict.*.txt"]
    if source is None:  # monolingual text
        patterns = [f"{subset}.bin", f"{subset}.idx", "dict.txt"]
    for file in sorted({file for pattern in patterns for file in Path(directory).glob(pattern)}):
        digest.update(file.name.encode())
        with file.open("rb") as stream:
            for block in blocks(stream):
                digest.update(block)
    return digest.hexdigest()
