"""The examples of docs/ and of each command's --help, run; CONTRIBUTING.md has the rules."""

import argparse
import contextlib
import io
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from alignment_eval import __version__
from alignment_eval.commands import COMMANDS
from tests.integration.conftest import PATH, PROGRAMS, ROOT, run_program

#: The page of each command: its own, or that of what it serves.
PAGES = {path.stem: path for path in sorted((ROOT / "docs/commands").glob("*.md")) if path.name != "README.md"}
PAGES |= {"curve": ROOT / "docs/monitoring.md", "filter": ROOT / "docs/scores.md", "merge": ROOT / "docs/scale.md"}
#: Pages of no command, if they have examples.
OTHER_PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
    if page not in PAGES.values() and "```console\n" in page.read_text(encoding="utf-8")
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
#: Columns of a wide terminal: argparse breaks the lines of --help by it.
WIDE = "100"
#: fairseq imports it once a process, by one path.
PLUGIN = ROOT / "fairseq_norm_plugin"
#: A command without quotes and other syntax of the shell, its files of output, and what its output is piped to.
SIMPLE = re.compile(
    r"(?P<words>[\w-]+(?: [^\s'\"`$|&;<>*{}()]+)*)"
    r"(?: > (?P<out>\S+))?(?: 2>(?P<merged>&1)| 2(?P<mode>>>?) (?P<err>\S+))?(?: \| (?P<rest>.*))?"
)


def console_examples(text):
    """(command, expected output) of each ``$`` line in the console blocks of a page."""
    found = []
    for kind, block in FENCE.findall(text):
        if kind == "console":
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, output = re.fullmatch(r"((?:.*\\\n)*.*)\n((?:.*\n)*)", part).groups()
                found.append((command, output))
    return found


def check_examples(page, bash, update):
    """Run the examples of a page; they print what it says, or with ``--update-examples`` it is made to say so."""
    for command, expected in console_examples(page.read_text(encoding="utf-8")):
        found = "".join(f"{line}\n" for line in stripped(bash(command)))
        compare(page, f"{command}\n", expected, found, update)


def check_python_examples(page, update):
    """Run the Python blocks of a page, one after the other, likewise."""
    examples = PYTHON.findall(page.read_text(encoding="utf-8"))  # code, and the block of text right after it
    assert examples
    names = {"__name__": "__main__"}
    for code, expected in examples:
        with contextlib.redirect_stdout(io.StringIO()) as found:
            exec(compile(code, page, "exec"), names)
        compare(page, f"{code}```\n\n```text\n", expected, found.getvalue(), update)


def compare(page, example, expected, found, update):
    """Compare what an example printed with what the page says after it, or make the page say so."""
    if update and not pattern(expected).fullmatch(found):
        old, new = (f"{example}{output}" for output in (expected, cut_alike(expected, found)))
        page.write_text(page.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
        return
    assert pattern(expected).fullmatch(found), f"{example}--- documented\n{expected}--- real\n{found}"


def cut_alike(expected, found):
    """What a command prints now, ``found``, cut where ``expected`` is: at the same lines, between the same words.

    Lines before the first line of ``…`` are taken from the beginning and those after the last from the end; further
    such lines are for a person to place.
    """
    old, new = expected.splitlines(), found.splitlines()
    if "…" not in old:
        return "".join(f"{line}\n" for line in map(cut_line, old + [""] * len(new), new))
    before, after = old.index("…"), old[::-1].index("…")
    head = map(cut_line, old[:before], new[:before])
    tail = map(cut_line, old[len(old) - after :], new[len(new) - after :])
    return "".join(f"{line}\n" for line in (*head, "…", *tail))


def cut_line(old, new):
    """``new`` with ``…`` where ``old``, which differs in numbers and names of files only, has it; else ``new``."""
    parts = [re.sub(r"\d+\\\.(\d+)|\w*\d\w*", any_number, re.escape(part)) for part in old.split("…")]
    match = re.fullmatch(".*?".join(f"({part})" for part in parts), new)
    return "…".join(match.groups()) if match else new


def words(command):
    """A command without its breaks of lines."""
    return " ".join(command.replace("\\\n", " ").split())


def epilog_examples(help_text):
    """The commands in the examples of a --help text."""
    commands = re.findall(r"^  ((?:align-eval|norm-align) (?:.*\\\n)*.*)$", help_text, re.MULTILINE)
    return [command for command in commands if "…" not in command]


def pattern(expected):
    """Expected output as a regular expression: ``…`` is any text in a line, a line of ``…`` any number of lines."""
    parts = [".*".join(map(re.escape, line.split("…"))) for line in stripped(expected)]
    return re.compile("".join(r"(?:.*\n)*" if line == ".*" else f"{line} *\n" for line in parts))


def stripped(text):
    return [line.rstrip() for line in text.splitlines()]


def any_number(match):
    """A pattern of what stood there: a number of as many decimals, or a word with digits."""
    return rf"\d+\.\d{{{len(match[1])}}}" if match[1] else r"\w+"


@pytest.fixture(scope="session")
def environment():
    return {**os.environ, "PATH": PATH, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1", "COLUMNS": WIDE}


@pytest.fixture(scope="session")
def demo(tmp_path_factory, environment):
    """What ``make demo`` leaves in out/demo."""
    if ready := os.environ.get("ALIGN_EVAL_DEMO"):
        return Path(ready)
    out = tmp_path_factory.mktemp("demo") / "out"
    environment = {**environment, "OUT": str(out)}
    done = subprocess.run(
        ["bash", ROOT / "scripts/demo.sh"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return out


@pytest.fixture
def root(demo, tmp_path, monkeypatch):
    """The working directory, which looks like the root of the repository after ``make demo``."""
    for name in ("data", "fairseq_norm_plugin", "scripts"):
        (tmp_path / name).symlink_to(ROOT / name)
    shutil.copytree(demo, tmp_path / "out/demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", WIDE)


@pytest.fixture
def bash(root, environment):
    """Run a command: what it prints.  One of PROGRAMS runs in this process unless it needs a shell or reads input."""

    def run(command, text=""):
        simple = SIMPLE.fullmatch(words(command))
        if simple and not text and simple["words"].split()[0] in PROGRAMS:
            given = (str(PLUGIN) if word == PLUGIN.name else word for word in simple["words"].split())
            done = run_program(*given, merged=bool(simple["merged"]))
            if simple["err"]:
                with Path(simple["err"]).open("a" if simple["mode"] == ">>" else "w", encoding="utf-8") as file:
                    file.write(done.stderr)
            if simple["out"]:
                Path(simple["out"]).write_text(done.stdout, encoding="utf-8")
            printed = "" if simple["out"] else done.stdout
            return run(simple["rest"], printed) if simple["rest"] else printed
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            **{"env": environment, "input": text, "capture_output": True, "encoding": "utf-8", "check": False},
        )
        assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def update(pytestconfig):
    """Whether the pages are to be rewritten."""
    return pytestconfig.getoption("--update-examples")


def test_the_bundled_links_are_those_of_the_demo(demo):
    for name in ("hyp.pharaoh", "both.pharaoh"):
        assert (demo / name).read_text() == (ROOT / "data/demo" / name).read_text()


@pytest.mark.parametrize("name", ["CITATION.cff", "README.md"])
def test_citations_name_the_version(name):
    named = re.findall(r"^ *version(?:: | = \{)([\d.]+)", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)
    assert {*named} == {__version__}


def test_every_command_has_a_page_and_every_page_a_command():
    assert sorted(PAGES) == sorted(COMMANDS)


@pytest.mark.parametrize("name", PAGES)
def test_page(name, bash, update):
    page = PAGES[name]
    text = page.read_text(encoding="utf-8")
    examples = console_examples(text)
    assert any(f"align-eval {name}" in command for command, _ in examples)
    for kind, block in FENCE.findall(text):
        assert kind == "console" or not re.search(r"^ *\$? *align-eval ", block, re.MULTILINE), "a command not run"
    check_examples(page, bash, update)


@pytest.mark.parametrize("page", OTHER_PAGES, ids=lambda page: page.stem)
def test_other_page(page, bash, update):
    check_examples(page, bash, update)


@pytest.mark.parametrize("page", ["README.md", "docs/python.md", "docs/records.md", "docs/analysis.md"])
@pytest.mark.usefixtures("root")
def test_page_of_python(page, update):
    check_python_examples(ROOT / page, update)


@pytest.mark.parametrize("name", ["norm-align", "align-eval", *(f"align-eval {name}" for name in COMMANDS)])
def test_examples_of_help(name, bash):
    examples = epilog_examples(run_program(*name.split(), "--help").stdout)
    assert any(f"{name} " in command for command in examples)
    page = PAGES[name.split()[1]] if " " in name else ROOT / "docs/align.md"
    shown = console_examples(page.read_text(encoding="utf-8"))
    if not {*map(words, examples)} <= {words(command) for command, _ in shown}:
        for command in examples:  # one may need what the one before wrote
            bash(command)


@pytest.mark.parametrize(("page", "table"), [("README.md", "readme"), ("docs/reproduction.md", "main")])
def test_tables_of_results_are_those_of_the_figures(monkeypatch, page, table):
    """``python scripts/results/systems.py page`` makes them."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts/results"))
    import systems

    made = systems.page(argparse.Namespace(name=table, csv=ROOT / "docs/figures/systems.csv"))
    assert made in (ROOT / page).read_text(encoding="utf-8")
