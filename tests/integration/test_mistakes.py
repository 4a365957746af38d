"""Typical mistakes of norm-align, and what happens: nothing wrong is said without a word.

Each row is a mistake, the exit status, and facts of the message; status 0 is a warning.  In Python an error has the
status of the command.
"""

import shlex
import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import fairseq_norm_plugin as fnp
from alignment_eval.errors import InputError, UsageError
from tests.demo import DEMO, lines, written
from tests.facts import says

GERMAN, ENGLISH = lines("de"), lines("en")
GOLD = (DEMO / "demo.talp").read_text(encoding="utf-8").splitlines()


def links(line, turned=False):
    """The sure links of a line of the gold, which is 1-based."""
    pairs = (link.split("-") for link in line.split() if "-" in link)
    return " ".join("-".join(str(int(i) - 1) for i in (pair[::-1] if turned else pair)) for pair in pairs)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A directory with texts, gold and alignments, right and wrong."""
    place = tmp_path_factory.mktemp("mistakes")
    files = {
        "de": GERMAN,
        "en": ENGLISH,
        "de59": GERMAN[:59],
        "en.shifted": [*ENGLISH[3:], *ENGLISH[:3]],
        "gold": GOLD,
        "hyp": [links(line) for line in GOLD],
        "turned": [links(line, turned=True) for line in GOLD],
        "moved": ["", *(links(line) for line in GOLD[:59])],
        "de5": GERMAN[:5],
        "en5": ENGLISH[:5],
    }
    for name, content in files.items():
        written(place / name, content)
    (place / "latin1").write_bytes("ü\n".encode("latin-1") * 60)
    (place / "link").symlink_to("de")
    shutil.copytree(DEMO, place / "model")
    (place / "text").mkdir()
    pq.write_table(pa.table({"id": [0], "source": ["ein Haus"], "target": ["a house"]}), place / "text/part.parquet")
    return place


SCORE = "align-eval score --gold gold --gold-base 1"
ALIGN = "norm-align --path demo --reverse-path none --tokenizer none --cpu -o links"
OWN = "--path model/checkpoint.pt --data model -s de -t en --bpe-codes model/codes.bpe --cpu --overwrite"
BOTH = "norm-align --path demo --tokenizer none --cpu -o links"
CALIBRATE = "norm-align calibrate --path demo --reverse-path none --tokenizer none --cpu -o new"
PAIR = "--source-text de --target-text en"
MISTAKES = [
    ("align-eval score --gold gold hyp", 0, "gold: read as 1-based"),
    (f"{SCORE} turned", 0, "turned: … with source and target exchanged"),
    (f"{SCORE} moved", 0, "moved: … remove 1 line from the hypothesis"),
    (f"{SCORE} hyp --gold-swap", 0, "hyp: AER"),
    (f"{ALIGN} spare --overwrite", 2, "unrecognized arguments: spare; see"),
    (f"{ALIGN}", 2, "--source-text"),
    (f"{ALIGN} --source-text de", 2, "--target-text is missing"),
    (f"{ALIGN} --source-text de59 --target-text en", 1, "59"),
    (f"{ALIGN} --source-text de --target-text latin1", 1, "latin1:1: … UTF-8"),
    (f"{ALIGN} --source-text en --target-text de", 1, "look exchanged … -s, -t … --force"),
    (f"{ALIGN} --source-text en --target-text de --force", 0, "look exchanged"),
    (f"{ALIGN} --source-text de --target-text en.shifted", 1, "do not look like translations of each other"),
    (f"{ALIGN} --source-text de --target-text de", 0, "same text"),
    (f"{ALIGN} {PAIR} --rule best", 2, "best"),
    (f"{ALIGN} {PAIR} --heads 9.9", 2, "9"),
    (f"{ALIGN} {PAIR} --setting awi", 2, "setting without heads"),
    (f"{ALIGN} {PAIR} --join union", 2, "--join without --reverse-path"),
    (f"{ALIGN} {PAIR} --profile none", 2, "expected --bpe-codes"),
    (f"{ALIGN} {PAIR} --profile missing.json", 1, "missing.json: no such profile"),
    (
        f"{ALIGN} {PAIR} --profile {DEMO}/checkpoint.en-de.pt.align.json",
        2,
        "trained from de to en … the profile of this model",
    ),
    (f"{ALIGN} {PAIR} --bpe none --bpe-codes hyp", 2, "expected --bpe-codes CODES"),
    (f"{ALIGN} {PAIR} --bpe-codes none", 1, "none: "),
    (f"{ALIGN} {PAIR} --table missing", 1, "missing: cannot read the file"),
    (f"{ALIGN} {PAIR} --table hyp", 1, "hyp: … not a lexical table"),
    (f"{ALIGN} {PAIR} -o hyp", 1, "hyp: already exists"),
    *(
        (f"norm-align {OWN} {words}", 2, "of this command, or holds it")
        for words in (
            f"{PAIR} -o link",
            f"{PAIR} -o model/codes.bpe",
            f"{PAIR} -o model/checkpoint.pt",
            f"{PAIR} -o model/dict.de.txt",
            f"{PAIR} -o model/checkpoint.pt.align.json",
            f"{PAIR} -o f --tokens-out f g",
            f"{PAIR} -o f --tokens-out f.parts g",
            "--text 'text/*.parquet' -o text/part.parquet",
            "--text 'text/*.parquet' -o text --ray",
        )
    ),
    (f"norm-align calibrate {OWN} {PAIR} -o de", 2, "de: is also an input"),
    (
        f"norm-align calibrate {OWN} {PAIR} --reverse-path model/checkpoint.pt",
        2,
        "trained from de to en … exchange the two models",
    ),
    (f"{ALIGN} {PAIR} --heads 1 --rule two-way=0.8", 0, "60 of 60 … one link or none … no alignment"),
    (f"{ALIGN} {PAIR} --heads 1 --rule threshold=0", 0, "each word is linked to all … the maps show no alignment"),
    (f"{ALIGN} {PAIR} -o - --resume", 2, "--resume with -o -"),
    (f"{ALIGN} {PAIR} --tokenizer mose", 2, "--tokenizer mose: choose one of"),
    (f"norm-align --path none.pt --data {DEMO} --cpu -o new {PAIR}", 1, "none.pt: no such file"),
    (f"norm-align --path demo -s de -t fr --cpu -o new {PAIR}", 1, "dict.fr.txt: no such file … de, en"),
    (f"{ALIGN} {PAIR} --text de", 2, "--text … another text"),
    (f"{ALIGN} --source-text de --target-text en.SDLXLIFF", 2, "en.SDLXLIFF: XLIFF and TMX"),
    (f"{CALIBRATE} --text de.tmx", 2, "de.tmx: XLIFF and TMX"),
    (f"{ALIGN} {PAIR} --resume --overwrite", 2, "--resume and --overwrite contradict each other"),
    (f"{ALIGN} {PAIR} --heads max-norm", 2, "--heads max-norm needs all maps"),
    (f"{ALIGN} {PAIR} --source-contribution", 2, "--source-contribution without --scores"),
    (f"{ALIGN} {PAIR} --scores", 2, "--scores without FILE.tsv"),
    (f"{ALIGN} {PAIR} --scores de", 2, "de: is also an input"),
    (f"{ALIGN} {PAIR} --user-dir missing", 1, "missing: no such directory"),
    (f"{ALIGN} {PAIR} --scores hyp", 1, "hyp: already exists"),
    (f"{ALIGN} {PAIR} --opaque b", 2, "--opaque without --markup"),
    (f"{ALIGN} {PAIR} --markup xml --confidences", 2, "--confidences with --markup"),
    (f"{ALIGN} {PAIR} --translate", 2, "--translate: expected --source-text, and no other text"),
    (f"{ALIGN} --source-text de --translate", 2, "--translate with links only … .jsonl"),
    (f"{ALIGN} --source-text de --translate 0", 2, "--translate … 0"),
    (f"{ALIGN} --shard 4/4", 2, "--shard: '4/4' … K/N"),
    (f"{ALIGN} {PAIR} --shard 0/4 -o -", 2, "--shard with -o -"),
    (f"{ALIGN} {PAIR} --protect none --protect X", 2, "--protect none with another"),
    (f"{ALIGN} --text '*.parquet' --ray -o -", 2, "--ray … directory as -o"),
    (f"{BOTH} {PAIR} --join union --confidences", 2, "makes links without confidences"),
    (f"{BOTH} {PAIR} --rule top-k=2", 2, "give --join"),
    (f"{BOTH} {PAIR} --heads 1 --rule shift-att --join average", 2, "join 'average' with rule 'shift-att'"),
    (f"norm-align --path none.pt --cpu -o new {PAIR} --rule two-way=2", 2, "share from 0 to 1"),  # no model is loaded
    (f"{CALIBRATE} --source-text de5 --target-text en5", 1, "5 different … 30"),
    (f"{CALIBRATE} --source-text en --target-text de", 1, "look exchanged … exchange the two texts"),
    (f"{CALIBRATE} {PAIR} --table-pairs -1", 2, "--table-pairs -1"),
]


@pytest.mark.parametrize(("command", "status", "text"), MISTAKES, ids=[command for command, *_ in MISTAKES])
def test_commands(program, place, monkeypatch, command, status, text):
    """A mistake that is refused leaves no file."""
    monkeypatch.chdir(place)
    before = {file: file.stat().st_mtime_ns for file in place.rglob("*")}
    done = program(*shlex.split(command), check=False)
    assert done.returncode == status, done.stderr
    assert says(done.stderr, text), done.stderr
    if status:
        assert done.stdout == ""
        assert "Traceback" not in done.stderr
        assert {file: file.stat().st_mtime_ns for file in place.rglob("*")} == before
    for file in set(place.iterdir()) - before.keys():
        file.unlink()


@pytest.fixture(scope="module")
def model():
    return fnp.load("demo", reverse_path="none", tokenizer="none")


CHECKPOINT = DEMO / "checkpoint.pt"
IN_PYTHON = [
    (lambda model: fnp.load("none.pt", DEMO), InputError, "none.pt: no such file"),
    (lambda model: fnp.load("demo", profile="none.json"), InputError, "none.json: no such profile"),
    (lambda model: fnp.load("demo", dtype="half"), UsageError, "dtype half: choose one of"),
    (lambda model: fnp.load("demo", reverse_path="no.pt"), InputError, "no.pt: no such file"),
    (lambda model: fnp.load(CHECKPOINT, DEMO, "de", "en", reverse_bpe_codes="c"), UsageError, "without reverse_path"),
    (lambda model: fnp.load(CHECKPOINT, s="de", t="en"), UsageError, "load has no option s"),
    (lambda model: fnp.load(CHECKPOINT, DEMO, "de", "en", profile="none"), UsageError, "expected --bpe-codes CODES"),
    (lambda model: model.align(GERMAN, ENGLISH[:59]), InputError, "60 sources, but 59 targets"),
    (lambda model: model.align(GERMAN, ENGLISH[0]), InputError, "target: … expected a list of lines"),
    (lambda model: model.align([1], ["x"]), InputError, "source[0]: 1: expected text"),
    (lambda model: model.align([], []), InputError, "source: an empty list"),
    (lambda model: model.align("", "x"), InputError, "the sentence pair is empty"),
    (lambda model: model.align("ja", "yes", heads="9.9"), UsageError, "9"),
    (lambda model: model.align("ja", "yes", rule="best"), UsageError, "best"),
    (lambda model: model.align("ja", "yes", kind="attn"), UsageError, "kind without heads"),
    (lambda model: model.align("ja", "yes", rules="two-way"), UsageError, "no option rules … mean rule?"),
    (lambda model: model.maps("ja", "yes").to_frame(layer=9), UsageError, "map 9 … layers 0, 1, 2"),
    (lambda model: model.align("ja", "yes", max_tokens=0), UsageError, "max_tokens 0"),
    (lambda model: model.align("ja", "yes", table="none.parquet"), InputError, "none.parquet: cannot read the file"),
    (lambda model: model.align("ja", "yes", profile="none.json"), InputError, "none.json: cannot be read"),
    (lambda model: model.align(["ja"], ["yes"], source_words=[["ja"], ["x"]]), InputError, "source_words: words of 2"),
    (lambda model: model.align("ja", "yes").explain(7, 0), UsageError, "words 7 and 0"),
    (lambda model: model.align(["ja"], ["yes"]).scores, UsageError, "scores=True"),
    (lambda model: model.maps("ja", "yes", kinds=["attn"]), UsageError, "attn"),
    (lambda model: model.align("ja", None), InputError, "target[0]: None"),
    (lambda model: model.align(["a\ud800"], ["x"]), InputError, "source[0]: character 1"),
    (lambda model: model.translate("ja", beam=0), UsageError, "beam 0"),
    (lambda model: model.translate("ja", beam=1.5), UsageError, "beam 1.5"),
    (lambda model: model.translate(["ja"], protect="("), UsageError, "protect '(': no regular expression"),
    (lambda model: model.transfer_markup("<b>ja</b>", "yes"), InputError, "sources: … expected a list of lines"),
    (lambda model: model.project([["X"]], ["ja"], ["yes"]), InputError, "labels[0]: label 'X' … B-TYPE or I-TYPE"),
    (lambda model: model.project([["O"]], ["ja"] * 2, ["yes"] * 2), InputError, "labels of 1 sentences, but 2 sources"),
    (lambda model: model.project([["O", "O"]], ["ja"], ["yes"]), InputError, "labels[0]"),
]


@pytest.mark.parametrize(("call", "error", "text"), IN_PYTHON, ids=[text for *_, text in IN_PYTHON])
def test_python(model, call, error, text):
    with pytest.raises(error) as raised:
        call(model)
    assert says(str(raised.value), text), str(raised.value)
