"""The signature of alignments: everything that decides their links, for norm-align, Python and Ray alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from alignment_eval.files import ContentHash, file_hash, json_hash
from alignment_eval.signature import Value, signature
from fairseq_norm_plugin.checkpoints.identity import architecture_hash, dictionary_hash
from fairseq_norm_plugin.installed import versions
from fairseq_norm_plugin.text.settings import FILES, TextSettings


def model_facts(
    identity: str, models: Sequence[Any], dictionaries: Iterable[Any], text: TextSettings, dtype: str
) -> dict[str, Value]:
    """What decides the maps of a model, and how its text is made.

    Args:
        identity: the hash of its parameters.
        models: the models of an ensemble.
        dictionaries: of source and target.
        text: how text becomes words and subwords.
        dtype: the type that the model is computed in.
    """
    options = {name: str(value) for name, value in sorted(text.options.items()) if name not in FILES}
    return {
        "model": identity,
        "architecture": architecture_hash(models),
        "dtype": dtype,
        "dictionary": dictionary_hash(*dictionaries),
        "tokenizer": text.tokenizer or "default",
        "normalize": text.normalize,
        "lowercase": text.lowercase,
        "bpe": text.bpe or "default",
        "codes": ",".join(file_hash(Path(name)) for name in text.files) or None,
        "words": ",".join(text.words),
        "mark": text.mark,
        **({"text_options": json.dumps(options).replace("|", r"\u007c")} if options else {}),
    }


def signed(
    models: Sequence[Mapping[str, Value]], texts: Iterable[str], sentences: int, fields: Mapping[str, Value]
) -> str:
    """The signature; it begins with ``run:HASH``, the hash of all its other fields.

    Args:
        models: the facts of the model, and of the model of the other direction; of this, what differs is shown.
        texts: the hashes of the text.
        sentences: the number of sentence pairs.
        fields: maps, rule, lexical table and profile.
    """
    found = versions()
    facts: dict[str, Value] = {"sentences": sentences, **fields, **models[0]}
    for other in models[1:]:
        facts |= {f"reverse_{name}": value for name, value in other.items() if value != models[0].get(name)}
    facts |= {"text": ",".join(texts), "torch": found["torch"], "fairseq": found["fairseq"]}
    return signature(run=json_hash({**facts, "version": found["version"]}), **facts)


def lines_hash(lines: Iterable[str]) -> str:
    """The hash of a file with these lines."""
    content = ContentHash()
    for line in lines:
        content.update(f"{line}\n".encode())
    return content.short
