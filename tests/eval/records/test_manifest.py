"""Manifests: what a directory must hold to count as a finished run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from alignment_eval.errors import InputError
from alignment_eval.records.manifest import Manifest, Part, check_part, finished_run, json_hash, read_manifests
from tests.facts import facts

MANIFEST = Manifest("alignments", {"model": "a", "generation": {"beam": 5}}, 4, 0, 2, finished=True)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two shards of a part each."""
    for shard in range(2):
        manifest = replace(MANIFEST, shard=shard)
        path = tmp_path / manifest.part_name(0)
        path.write_text(f"{shard}\t0-0\n{shard + 2}\t\n")
        replace(manifest, parts=(Part.of(path, 2),)).write(tmp_path)
    return tmp_path


def test_round_trip(run: Path) -> None:
    manifests = finished_run(run, "alignments")
    assert [manifest.shard for manifest in manifests] == [0, 1]
    assert manifests[0] == replace(MANIFEST, parts=manifests[0].parts)
    assert [part.name for part in manifests[1].parts] == ["part-00001-of-00002-00000.tsv"]
    for manifest in manifests:
        check_part(run, *manifest.parts)
    assert read_manifests(run / "none", "alignments") == []


def test_shards_missing_or_unfinished(run: Path) -> None:
    replace(MANIFEST, shard=1, finished=False).write(run)
    with pytest.raises(
        InputError, match=facts("shards 1 of 2 are unfinished; run them again with --norm-records-resume")
    ):
        finished_run(run, "alignments")
    (run / "_shard-00001-of-00002.json").unlink()
    with pytest.raises(InputError, match=facts("shards 1 of 2 are missing")):
        finished_run(run, "alignments")


def test_other_signature(run: Path) -> None:
    other = {"model": "b", "generation": {"beam": 4}}
    replace(MANIFEST, shard=1, signature=other).write(run)
    with pytest.raises(
        InputError,
        match=facts(f"run {json_hash(other)}, but … run {MANIFEST.signature_hash} … generation.beam, model"),
    ):
        finished_run(run, "alignments")


def test_other_content(run: Path) -> None:
    with pytest.raises(InputError, match=facts("alignments, not records … the --norm-records directory of a run")):
        finished_run(run, "records")


def test_damaged(run: Path) -> None:
    (part,) = read_manifests(run, "alignments")[0].parts
    (run / part.name).write_text("0\t0-1\n2\t\n")
    with pytest.raises(InputError, match=facts(f"{part.name}: … damaged … {part.hash}")):
        check_part(run, part)
    (run / part.name).unlink()
    with pytest.raises(InputError, match=rf"{part.name}: no such file, but _shard-00000-of-00002.json lists it"):
        finished_run(run, "alignments")


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema_version": 2}', '{"schema_version": 2, "parts": [3]}', "\xff"]
)
def test_manifests_of_something_else(tmp_path: Path, text: str) -> None:
    (tmp_path / MANIFEST.name).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=facts(".json: … not the manifest of a shard")):
        read_manifests(tmp_path, "alignments")


def test_other_schema_version(tmp_path: Path) -> None:
    replace(MANIFEST, schema_version=7).write(tmp_path)
    with pytest.raises(
        InputError, match=facts("schema_version is 7: expected version 2 … run … again with this version")
    ):
        read_manifests(tmp_path, "alignments")


def rewrite(path: Path, change: Callable[[dict[str, Any]], object], sign: bool = True) -> None:
    """Change a manifest; with ``sign`` its hashes are those of what it says then, as a liar's would be."""
    content = json.loads(path.read_text())
    content.pop("hash")
    change(content)
    if sign:
        content["signature_hash"] = json_hash(content["signature"])
        content["hash"] = json_hash(content)
    path.write_text(json.dumps(content))


def test_a_manifest_of_before_its_hash(run: Path) -> None:
    for path in run.glob("_shard*"):
        rewrite(path, lambda content: None, sign=False)
    assert len(finished_run(run, "alignments")) == 2


@pytest.mark.parametrize("bits", [1, pytest.param(8, marks=pytest.mark.slow)])
def test_any_flipped_bit_is_seen(run: Path, bits: int) -> None:
    """None changes what a manifest says: refused, or in the white space.  ``bits`` of each byte are tried."""
    path = run / MANIFEST.name
    content, expected = path.read_bytes(), read_manifests(run, "alignments")
    refused = 0
    for position in range(len(content)):
        for bit in range(position, position + bits):
            flipped = content[position] ^ 1 << bit % 8
            path.write_bytes(content[:position] + bytes([flipped]) + content[position + 1 :])
            try:
                assert read_manifests(run, "alignments") == expected
            except InputError:
                refused += 1
    assert refused > 0.8 * bits * len(content)


@pytest.mark.parametrize(
    "change",
    [
        lambda content: content["parts"][0].update(name="../../victim.txt"),
        lambda content: content["parts"][0].update(name="/tmp/victim.txt"),
        lambda content: content["parts"][0].update(name="part-00001-of-00002-00000.tsv"),  # of another shard
        lambda content: content["parts"][0].update(name="_shard-00000-of-00002.json"),
        lambda content: content["parts"].append(content["parts"][0]),
        lambda content: content["parts"][0].update(sentences="2"),
        lambda content: content["parts"][0].pop("hash"),
        lambda content: content.update(size=-1),
        lambda content: content.update(size=True),
        lambda content: content.update(size=2.0),
        lambda content: content.update(shards=10**12),
        lambda content: content.update(shard=2),
        lambda content: content.update(shard=1),
        lambda content: content.update(signature=[]),
        lambda content: content.update(details=None),
        lambda content: content.update(content="secrets"),
        lambda content: content.update(finished=1),
        lambda content: content.update(more=1),
        lambda content: content.pop("finished"),
        lambda content: content.update(size=10**30),
        lambda content: content["parts"][0].update(sentences=-1),
        lambda content: content.update(schema_version="\ud800" * 1000),
    ],
)
def test_lies_are_refused(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    rewrite(run / MANIFEST.name, change)
    with pytest.raises(InputError, match=r"_shard-00000-of-00002.json: ") as error:
        read_manifests(run, "alignments")
    assert len(str(error.value)) < 500


def test_a_signature_under_the_hash_of_another(run: Path) -> None:
    rewrite(run / MANIFEST.name, lambda content: content["signature"].update(model="b"), sign=False)
    with pytest.raises(InputError, match="signature_hash does not match"):
        read_manifests(run, "alignments")


def test_nested_brackets(run: Path) -> None:
    (run / MANIFEST.name).write_text("[" * 200_000)
    with pytest.raises(InputError, match=facts(".json: … not the manifest of a shard")):
        read_manifests(run, "alignments")


def test_shards_that_contradict_each_other(run: Path) -> None:
    rewrite(run / "_shard-00001-of-00002.json", lambda content: content.update(size=300_000_000))
    with pytest.raises(InputError, match=facts("size, shards or details differ from those of")):
        finished_run(run, "alignments")


def test_missing_among_many_shards(tmp_path: Path) -> None:
    for shard in (0, 2):
        replace(MANIFEST, shard=shard, shards=99_999).write(tmp_path)
    with pytest.raises(InputError, match=facts("shards 1, 3, 4, 5, 6, … (99997 in total) of 99999 are missing")):
        finished_run(tmp_path, "alignments")


def test_a_file_in_the_place_of_the_directory(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match=facts("f: … is a file … --norm-alignments")):
        read_manifests(tmp_path / "f", "alignments")
