"""The house is kept: a test file for each module, folders, files and classes that can be taken in."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"alignment_eval": "tests/eval", "fairseq_norm_plugin": "tests/plugin"}
FOLDERS = (*PACKAGES, "tests", "scripts")
#: The most modules of a folder, of tests and of others, lines of a file and lines of a class.
TESTS, MODULES, FILE_LINES, CLASS_LINES = 18, 14, 400, 150

#: Modules that are tested through what a user calls, and where.
ELSEWHERE = {
    "alignment_eval/selection/find.py": "tests/eval/selection/test_of_records.py",
    "fairseq_norm_plugin/aligning/profiles.py": "tests/integration/align/test_calibrate.py",
    # command lines and the text they read
    "alignment_eval/selection/describe.py": "tests/eval/commands/test_select.py",
    "fairseq_norm_plugin/align/arguments.py": "tests/integration/align/test_align.py",
    "fairseq_norm_plugin/align/calibrate.py": "tests/integration/align/test_calibrate.py",
    "fairseq_norm_plugin/align/cli.py": "tests/integration/align/test_align.py",
    "fairseq_norm_plugin/align/engine.py": "tests/integration/align/test_engines.py",
    "fairseq_norm_plugin/align/on_ray.py": "tests/integration/align/test_engines.py",
    "fairseq_norm_plugin/align/precision.py": "tests/integration/align/test_precision.py",
    "fairseq_norm_plugin/align/windows.py": "tests/integration/align/test_engines.py",
    "fairseq_norm_plugin/api/batches.py": "tests/plugin/api/test_align_batch.py",
    "fairseq_norm_plugin/align/method.py": "tests/integration/align/test_align.py",
    "fairseq_norm_plugin/align/run.py": "tests/integration/align/test_align.py",
    "fairseq_norm_plugin/aligning/checking.py": "tests/integration/align/test_checking.py",
    # a model and its data
    # methods of the model that fairseq_norm_plugin.load gives
    "fairseq_norm_plugin/api/block_maps.py": "tests/plugin/api/test_map_model.py",
    "fairseq_norm_plugin/api/map_reader.py": "tests/plugin/api/test_map_model.py",
    "fairseq_norm_plugin/api/model.py": "tests/plugin/api/test_loading.py",
    "fairseq_norm_plugin/api/masked_lm.py": "tests/integration/models/test_bert.py",
    # models of Transformers that become fairseq's
    "fairseq_norm_plugin/convert/bert.py": "tests/integration/models/test_bert.py",
    "fairseq_norm_plugin/convert/checkpoint.py": "tests/plugin/convert/test_marian.py",
    "fairseq_norm_plugin/convert/cli.py": "tests/plugin/convert/test_marian.py",
    "fairseq_norm_plugin/convert/config.py": "tests/plugin/convert/test_marian.py",
    "fairseq_norm_plugin/loading/languages.py": "tests/integration/models/test_multilingual_text.py",
    # fairseq-train and fairseq-generate
    "fairseq_norm_plugin/monitoring/counts.py": "tests/integration/training/test_monitoring.py",
    "fairseq_norm_plugin/monitoring/mixin.py": "tests/integration/training/test_monitoring.py",
    "fairseq_norm_plugin/monitoring/options.py": "tests/integration/training/test_monitoring.py",
    "fairseq_norm_plugin/tasks/masked_lm.py": "tests/integration/models/test_bert.py",
    "fairseq_norm_plugin/tasks/multilingual.py": "tests/integration/models/test_multilingual.py",
}
#: Classes that are larger, and why.
LARGER: dict[str, str] = {}


def modules(folder: str) -> list[Path]:
    return sorted(path.relative_to(ROOT) for path in (ROOT / folder).rglob("*.py"))


def namesake(module: Path) -> Path:
    """The test file of a module of a package."""
    return Path(PACKAGES[module.parts[0]], *module.parts[1:-1], f"test_{module.name}")


@pytest.mark.parametrize("package", PACKAGES)
def test_each_module_has_a_test_file(package: str) -> None:
    of_package = [module for module in modules(package) if not module.name.startswith("__")]
    assert of_package
    without = {str(module) for module in of_package if not (ROOT / namesake(module)).exists()}
    listed = {module for module in ELSEWHERE if module.startswith(f"{package}/")}
    assert without - listed == set(), "add a test file, or say in ELSEWHERE where the module is tested"
    assert listed - without == set(), "in ELSEWHERE, but it has a test file, or is gone"


@pytest.mark.parametrize("module", ELSEWHERE)
def test_where_else_a_module_is_tested(module: str) -> None:
    assert (ROOT / ELSEWHERE[module]).is_file()


@pytest.mark.parametrize("folder", FOLDERS)
def test_sizes(folder: str) -> None:
    files = [file for file in modules(folder) if file.name not in ("__init__.py", "conftest.py")]
    most = TESTS if folder == "tests" else MODULES
    held = {parent: sum(file.parent == parent for file in files) for parent in {file.parent for file in files}}
    assert {str(parent): count for parent, count in held.items() if count > most} == {}
    lines = {file: len((ROOT / file).read_text(encoding="utf-8").splitlines()) for file in files}
    assert {str(file): count for file, count in lines.items() if count > FILE_LINES} == {}


def test_sizes_of_classes() -> None:
    larger = {}
    for file in (file for package in PACKAGES for file in modules(package)):
        for node in ast.walk(ast.parse((ROOT / file).read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and (node.end_lineno or 0) - node.lineno + 1 > CLASS_LINES:
                larger[f"{file}: {node.name}"] = (node.end_lineno or 0) - node.lineno + 1
    assert larger.keys() == LARGER.keys(), larger


def test_ci_calls_what_the_makefile_has() -> None:
    targets = set(re.findall(r"^(\w+):(?!=)", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    workflow, local = ((ROOT / path).read_text(encoding="utf-8") for path in (".github/workflows/ci.yml", ".ci/run"))
    called = {*re.findall(r"make (\w+)", workflow + local), *re.findall(r"tests: (\w+)", workflow)}
    assert {"lint", "test"} <= called <= targets
