"""Mistakes of command lines and files: the last line of stderr names the facts, and no file is written or changed."""

import shlex

import pytest

from tests.eval.commands.test_curve import printed
from tests.eval.shards import write
from tests.facts import content, says

LABELS = "In\tO\nGraz\tB-LOC\n\nWälder\tO\n"
CONVERT = "convert --to"
LEXICON = "lexicon --source source --target target"
REPORT = "report run --gold gold --gold-base 1 -o out"
FILTER = "filter text.a --scores scores --keep 0.5 -o out"
PLOT = "plot -o out.svg --sentence"
PROJECT = "project --labels labels --target-text text --links links -o out"
SCORE = "score --gold gold --gold-base 1 hyp"
ERRORS = "errors --gold links --gold-base 0 --source source --target target links"
SQUAD = '{"context": "a b", "answers": %s}'
SPANS = '{"text": "a b", "spans": [%s]}'
#: Two sentences; those of run, "a b c ." each, are three; the second is too long.
FILES = {
    "gold": "1-1 2-2 3p3\n1-2 2-1\n",
    "hyp": "0-0 2-2 3-3\n0-1\n",
    "hyp3": "0-0 2-2 3-3\n0-1\n\n",
    "hyp1": "0-0\n",
    "far": "0-0\n2-0\n",
    "sure": "0-0\n\n1-0 2-3\n",
    "scored": "1-0:0.25 0-0:1e-2\n\n0-2:-3.5\n",
    "naacl": "1 1 1\n",
    "ones": "1-1\n" * 9,
    "blank": "\n\n",
    "source": "der hund\nder katze\n",
    "target": "the dog\nthe cat\n",
    "b@@": "a@@ b c\nd\n",
    "mixed": "▁x a@@ y\nz\n",
    "labels": LABELS,
    "text": "Graz\nforests\n",
    "links": "1-0\n0-0\n",
    "text.a": "a\n" * 7,
    "scores": "unsupported\tstatus\n0.5\tok\n",
    "log": printed("test", 100, aer="0.5"),
    "log.valid": printed("valid", 100, loss="2.5"),
    "damaged.parquet": "PAR1xx",
}
#: Two files, of which one counts from 1, with their texts; and commands that read them.
TWO = dict.fromkeys(("hyp", "gold"), "0-0\n" * 9) | dict.fromkeys(("source", "target"), "a b\n" * 9)
READ_TWO = (
    "score --gold gold --gold-base 0",
    "report --source source --target target -o out --hyp",
    "symmetrize --method union",
)
#: Links that are outside unless the texts are exchanged.
EXCHANGED = {"gold": "1-1 4-2\n1-2\n", "hyp": "0-0 3-1\n0-1\n", "source": "a b c d\na b\n", "target": "x y\nx y\n"}
MISTAKES = [
    ("scor", {}, 2, "do you mean score?"),
    (f"{SCORE} --possible keep", {}, 2, "--possible keep (--possible: do you mean align-eval convert --possible?)"),
    ("score --gold gold hyp -o x.tex", {}, 2, "unrecognized arguments: -o x.tex; see"),
    ("errors --gold gold hyp --format sentences", {}, 2, "(choose from 'text', 'json'); see"),
    ("score --golf gold hyp", {}, 2, "do you mean --gold?"),
    ("extract run --layer 1", {}, 2, "--layer: do you mean --heads?"),
    (f"{SCORE} --source-text source", {}, 2, "--source-text: do you mean --source?"),
    (f"{SCORE} --fromat=tsv", {}, 2, "do you mean --format?"),
    (f"{SCORE} --format jsom", {}, 2, "do you mean json?"),
    (f"{SCORE} --gold-bas 1", {}, 2, "--gold-bas"),
    ("score --gold '' hyp", {}, 2, "--gold '' … empty"),
    *((f"sweep run --gold gold --kinds '{kinds}' -o out", {}, 2, f"'{kinds}': … names") for kinds in ("", "a,")),
    ("score hyp", {}, 2, "required: --gold"),
    ("score --gold ones --gold-base 0 ones", {}, 1, "give --gold-base 1"),
    ("score --gold ones --gold-base 1 ones", {}, 1, "ones: … give --hyp-base 1"),
    ("score --gold gold --gold-base 1 gold --hyp-base 1", {}, 1, "gold: … possible"),
    *((f"{command} hyp ones", TWO, 1, "ones: … base 1 … convert ones --from-base 1 … -o NEW") for command in READ_TWO),
    (f"{SCORE} ones --hyp-base 1", {}, 1, "hyp:1: … --hyp-base 0 … convert hyp --from-base 0 … --to-base 1 -o NEW"),
    (f"{SCORE}1", {}, 1, "hyp1 has 1 sentences, but gold has 2"),
    (f"{SCORE} none", {}, 1, "none: "),
    (SCORE, {"hyp": ""}, 1, "hyp: the file is empty"),
    (SCORE, {"hyp": "0-0\n1-\n"}, 1, "hyp:2"),
    ("score --gold naacl --gold-base 1 hyp", {}, 1, "1 sentences up to its last link … NAACL … the texts"),
    ("score --gold gold --gold-base 1 hyp3", {}, 1, "gold has 2 … the last line of hyp3 is blank"),
    (f"{SCORE} --source - --target target", {}, 2, "--source: '-'"),
    ("score --gold - -", {}, 2, "several inputs are -"),
    (f"{SCORE} --source source", {}, 2, "only one of --source and --target"),
    (f"{SCORE} --source target --target source", EXCHANGED, 1, "look exchanged … exchange --source and --target"),
    (f"{SCORE} --resamples 0", {}, 2, "resamples"),
    (f"{SCORE} --resamples 200 --format sentences", {}, 2, "--resamples with --format sentences"),
    (f"{SCORE} --diagnose --format tsv", {}, 2, "--diagnose with --format tsv: … text or json"),
    *((ERRORS, {"source": f"{mark}\n" * 2}, 1, "source: … subword mark") for mark in ("de@@ r", "de ##r")),
    (f"{ERRORS} links links", {}, 2, "3 hypotheses"),
    (f"{CONVERT} xml hyp", {}, 2, "--to"),
    (f"{CONVERT} fairseq --to-base 1 sure", {}, 2, "--to fairseq with --to-base 1 … 0"),
    (f"{CONVERT} pharaoh --from-base 1 gold", {}, 1, "gold: 1 possible links … --possible keep"),
    (f"{CONVERT} scored sure", {}, 1, "sure: … no scores … --to scored"),
    (f"{CONVERT} naacl blank", {}, 1, "blank: no links"),
    (f"{CONVERT} talp --min-confidence 0.5 sure", {}, 1, "sure: … no scores … --min-confidence"),
    (f"{CONVERT} talp --min-confidence nan scored", {}, 2, "--min-confidence nan: … finite"),
    (f"{CONVERT} scored --from-subwords auto hyp", {}, 2, "--from-subwords without --source and --target"),
    (f"{CONVERT} talp --subwords auto hyp", {}, 2, "--subwords without --source and --target"),
    (f"{CONVERT} talp --subwords auto hyp --source source --target naacl", {}, 1, "source has 2 lines … naacl has 1"),
    (f"{CONVERT} talp --subwords auto hyp --source b@@ --target mixed", {}, 1, "mixed … @@ … ▁ … --subwords"),
    (
        f"{CONVERT} talp --from-subwords auto hyp --source source --target target",
        {},
        1,
        "source, target … no marks … one of @@, ▁",
    ),
    ("curve log --metrics aer,bleu -o out.png", {}, 1, "--metrics bleu: no such metric"),
    ("curve log log.valid -o out.png", {}, 1, "no such metric in log.valid"),
    ("curve log --pictures . -o out.png", {}, 2, "--pictures"),
    ("curve log -o out.txt", {}, 2, "out.txt"),
    ("extract hyp --heads 1 -o out", {}, 1, "hyp: "),
    ("extract . --heads 1 -o out", {}, 1, ".: no parts"),
    ("curve hyp -o out.png", {}, 1, "hyp: the file has no lines of statistics"),
    (FILTER, {}, 1, "text.a: 7 lines … 1 pairs"),
    ("filter text.a --scores scores --keep 0.5 -o a b", {}, 2, "-o"),
    ("filter text.a --scores scores --keep 0.5 --max-unsupported 0.5 -o out", {}, 2, "--max-unsupported"),
    ("filter text.a --scores scores --keep 2 -o out", {}, 2, "--keep"),
    ("filter text.a --scores scores -o out", {}, 2, "--max-omitted"),
    (FILTER, {"scores": "omitted\tstatus\n0.5\tok\n"}, 1, "scores:1: … unsupported"),
    ("filter text.a --scores j.jsonl --keep 1 -o out", {"j.jsonl": '{"omitted": 1}\n'}, 1, "j.jsonl:1: … unsupported"),
    (FILTER, {"scores": "unsupported\tstatus\n0.5\tok\n\tok\n"}, 1, "scores:3: unsupported is ''"),
    (FILTER, {"scores": "unsupported\tstatus\nnan\tok\n"}, 1, "scores:2: unsupported is 'nan'"),
    (f"{LEXICON} far", {}, 1, "far:2: link 2-0 … 2 words in source and 2 in target"),
    (f"{LEXICON} gold --links-base 1", {}, 1, "gold:1: … possible link (p) … convert --possible"),
    (f"{LEXICON} hyp1", {}, 1, "hyp1 has 1 sentences, but source has 2"),
    (f"{LEXICON} hyp1 --min-count 0", {}, 2, "1 or more"),
    ("merge parts -o out", {}, 1, "parts: … signature"),
    (f"{PLOT} 0 run --heads 1:awi", {}, 2, "--heads 1:awi: … --setting"),
    ("plot run --sentence 0 --heads 1 -o out.jpg", {}, 2, "out.jpg: … 'jpg' … .png, .svg, .pdf"),
    (f"{PLOT} 0 run --heads 1 --hyp hyp --rule shift-att", {}, 2, "--rule together with --hyp"),
    (f"{PLOT} 0 run --heads 1 --hyp hyp", {}, 1, "hyp has 2 sentences, but run has 3"),
    (f"{PLOT} 3 run --heads 1", {}, 1, "run: no sentence 3: … 0 to 2"),
    (f"{PLOT} 1 run --heads 1", {}, 1, "run: sentence 1 … too long"),
    (f"{PLOT} 0 --hyp hyp", {}, 2, "without RECORDS: … --hyp … texts"),
    (f"{PLOT} 0 hyp", {}, 2, "a file, not a records directory … --hyp hyp"),
    (f"{PLOT} 0 --hyp links --source source --target target --heads 1", {}, 2, "--heads without RECORDS"),
    (f"{PLOT} 2 --hyp links --source source --target target", {}, 1, "no sentence 2: … 0 to 1"),
    (PROJECT, {"labels": ""}, 1, "labels: the file is empty"),
    (PROJECT, {"labels": f"{LABELS}\na\tO\n"}, 1, "labels: 3 sentences, but text has 2 lines"),
    (PROJECT, {"text": "Graz\n\n"}, 1, "text:2: a blank line"),
    (PROJECT, {"links": "5-0\n\n"}, 1, "links:1: link … outside … 2 words in labels and 1 in text"),
    (PROJECT, {"links": "\n\n\n"}, 1, "links has 3 sentences, but labels has 2"),
    (PROJECT, {"links": "0-0:1.5\n\n"}, 1, "links:1: link 0-0 has the confidence 1.5"),
    (PROJECT, {"labels": SQUAD % '{"text": ["b"], "answer_start": [0]}'}, 1, "labels:1: the answer at 0 is 'a'"),
    (PROJECT, {"labels": SQUAD % '["b"]'}, 1, "labels:1: … expected"),
    (PROJECT, {"labels": SPANS % '[0, 4, "X"]'}, 1, "labels:1: span 0 to 4 … 3 characters"),
    (PROJECT, {"labels": SPANS % '[0, 3, "X"], [2, 3, "Y"]'}, 1, "labels:1: span 2 to 3 shares a word"),
    (f"{REPORT} --hyp far", {"gold": "\n\n\n", "far": "0-9\n\n\n"}, 1, "far:1: … 0-9"),
    (f"{REPORT} --hyp hyp1", {"gold": "\n\n\n"}, 1, "hyp1 has 1 sentences"),
    ("report --gold gold -o out", {}, 2, "neither RECORDS nor --hyp"),
    ("report --gold gold --hyp hyp -o out", {}, 2, "--hyp without RECORDS: … --source and --target"),
    ("report --hyp hyp --source source --target target --rule shift-att -o out", {}, 2, "--rule without RECORDS"),
    ("sweep run --gold blank --gold-base 0 --rules x -o out", {"blank": "\n" * 3}, 2, "'x' … kobayashi2020, shift-att"),
    ("signature none", {}, 1, "none: "),
    ("signature hyp", {}, 1, "hyp: no signature … hyp.signature.json"),
    ("signature damaged.parquet", {}, 1, "damaged.parquet: damaged"),
    ("symmetrize hyp hyp1 --method union", {}, 1, "hyp has 2 sentences, but hyp1 has 1 sentences"),
    ("symmetrize hyp gold --method union", {}, 1, "gold:1 … a possible link (p)"),
    ("symmetrize ones ones --method union --from-base 0", {}, 1, "--from-base 1 … --from-base 0-unused"),
    ("symmetrize hyp --method union", {}, 2, "REVERSE"),
]


@pytest.fixture
def place(tmp_path, make_records, make_sentence, monkeypatch):
    """The working directory, with the FILES, records and parts of links."""
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    make_records(tmp_path / "run", [make_sentence(0), make_sentence(1, status="too long"), make_sentence(2)])
    write(tmp_path / "parts", [[{0: "0-0"}]], 1, signature={"extraction": 3})
    return tmp_path


@pytest.mark.parametrize(("command", "files", "status", "fact"), MISTAKES)
def test_mistakes(place, call, command, files, status, fact):
    for name, text in files.items():
        (place / name).write_text(text, encoding="utf-8")
    before = content(place)
    found, out, err = call(*shlex.split(command))
    assert (found, out) == (status, ""), err
    assert says(err.splitlines()[-1], fact), err
    assert "Traceback" not in err
    assert content(place) == before
