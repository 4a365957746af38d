"""What is installed beside this package: which torch and which fairseq, whether they serve, and how to get them.

fairseq is the user's: a release, the main branch or a fork, from PyPI or from source.
"""

from __future__ import annotations

import inspect
import platform
import re
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, distributions, version
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name

from alignment_eval import signature as texts
from alignment_eval.errors import InputError

#: From this version on torch.load unpickles nothing unless told so (CVE-2025-32434 was in those before).
_TORCH = (2, 6)
#: fairseq's modules in C++ and Cython that every command needs, by their directory.
_COMPILED = {"": ("libbleu",), "data": ("data_utils_fast", "token_block_utils_fast")}

#: What the plugin overrides or calls, and the arguments that it gives.
_CALLED = {
    "fairseq.checkpoint_utils:load_checkpoint_to_cpu": "path arg_overrides",
    "fairseq.modules:MultiheadAttention.forward": "query key value key_padding_mask incremental_state need_weights "
    "static_kv attn_mask before_softmax need_head_weights",
    "fairseq.modules:MultiheadAttention._get_input_buffer": "incremental_state",
    "fairseq.modules:MultiheadAttention._set_input_buffer": "incremental_state buffer",
    "fairseq.sequence_generator:EnsembleModel.forward_decoder": "tokens encoder_outs incremental_states",
    "fairseq.sequence_generator:EnsembleModel.forward_encoder": "net_input",
    "fairseq.sequence_generator:SequenceGenerator._generate": "sample prefix_tokens constraints bos_token",
    "fairseq.sequence_scorer:SequenceScorer.generate": "models sample",
    "fairseq.tasks.translation:TranslationTask.build_model": "cfg from_checkpoint",
    "fairseq.tasks.translation:TranslationTask.build_generator": "models args seq_gen_cls extra_gen_cls_kwargs",
    "fairseq.tasks.translation:TranslationTask.filter_indices_by_size": "indices dataset max_positions "
    "ignore_invalid_inputs",
    "fairseq.tasks.translation:TranslationTask.get_batch_iterator": "dataset required_batch_size_multiple",
    "fairseq.tasks.translation:TranslationTask.inference_step": "generator models sample",
    "fairseq.tasks.translation:TranslationTask.valid_step": "sample model criterion",
}


def versions() -> dict[str, str]:
    """The versions that numbers may depend on: this package's, torch's, and fairseq's with its distribution."""
    return {"version": texts.version(), "torch": _torch() or "none", "fairseq": _fairseq() or "none"}


def version_line(program: str) -> str:
    """What ``--version`` prints."""
    found = versions()
    beside = f"torch {found['torch']}, fairseq {found['fairseq']}, Python {platform.python_version()}"
    return f"{program} {found['version']} ({beside})"


def install_line() -> str:
    """The command that installs a fairseq for this Python on this platform."""
    wheels = sys.platform == "linux" and platform.machine() == "x86_64"
    if sys.version_info < (3, 11):
        return "pip install 'pip<24.1' 'torch>=2.6' && pip install fairseq==0.12.2"
    if sys.version_info < (3, 13) and wheels:
        return "pip install 'torch>=2.6' ve-fairseq==0.12.3"
    return "pip install 'torch>=2.6' cython setuptools && pip install --no-build-isolation fairseq-fixed==0.12.3.1"


def check_installed() -> None:
    """Check that there is a torch and a fairseq that the plugin can be loaded into."""
    spec = find_spec("fairseq")
    if spec is None or not spec.submodule_search_locations:
        other = "only fairseq2, another program, is installed" if find_spec("fairseq2") else "fairseq is not installed"
        raise InputError(f"{other}; the plugin needs fairseq 0.12: {install_line()}")
    torch = _torch()
    if torch is None:
        raise InputError(f"torch is not installed; the plugin and fairseq need it: {install_line()}")
    if tuple(map(int, re.findall(r"\d+", torch)[:2])) < _TORCH:
        raise InputError(
            f"torch {torch} can run code of a checkpoint that it reads: expected 2.6 or newer; pip install 'torch>=2.6'"
        )
    for place in spec.submodule_search_locations:
        for folder, names in _COMPILED.items():
            for name in names:
                if PathFinder.find_spec(name, [str(Path(place, folder))]) is None:
                    raise InputError(
                        f"{_fairseq()} in {place} lacks its compiled module {name} for Python "
                        f"{platform.python_version()}; build it (in a clone: pip install --editable .), or "
                        f"{install_line()}"
                    )


def check_calls() -> None:
    """Import fairseq, and check that what the plugin calls of it takes the arguments that it gives."""
    for name, arguments in _CALLED.items():
        missing = set(arguments.split()) - set(inspect.signature(resolve_name(name)).parameters)
        if missing:
            called = name.partition(":")[2]
            raise unsuitable(TypeError(f"{called} has no argument {', '.join(sorted(missing))}"))


def unsuitable(error: Exception) -> InputError:
    """The error for a fairseq that raised ``error`` when the plugin was loaded."""
    reason = " ".join(f"{type(error).__name__}: {error}".split())
    return InputError(
        f"{_fairseq()} cannot be used with Python {platform.python_version()} ({reason[:300]}): expected fairseq 0.12 "
        f"or its main branch, unchanged in what the plugin uses (docs/models.md#versions); {install_line()}"
    )


def _torch() -> str | None:
    try:
        return version("torch")
    except PackageNotFoundError:
        return None


def _fairseq() -> str | None:
    """``fairseq-0.12.2``, the distribution that brings the module; several if they overwrite each other."""
    spec = find_spec("fairseq")
    if spec is None:
        return None
    tops = ((each, each.read_text("top_level.txt") or "") for each in distributions())
    names = sorted({f"{each.metadata['Name']}-{each.version}" for each, top in tops if "fairseq" in top.split()})
    return "+".join(names) or f"fairseq-{_source_version(spec)}"


def _source_version(spec: ModuleSpec) -> str:
    """The version of a fairseq that is no distribution, such as a clone in PYTHONPATH."""
    for place in spec.submodule_search_locations or ():
        if (file := Path(place, "version.txt")).is_file():
            return file.read_text("utf-8").strip()
    return "of-unknown-version"


if __name__ == "__main__":
    print(install_line())
