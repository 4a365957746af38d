import json

from alignment_eval.reading import content_hash
from tests.facts import says

OPTIONS = ("--gold", "gold", "--gold-base", "1", "--source", "source", "--target", "target")
STATED = ("hyp", *OPTIONS)
FILES = {
    "gold": "1-1 2-2 3-3\n1-1 1p2\n",
    "hyp": "0-0 2-1\n0-1\n",
    "other": "0-0 1-1 1-0\n0-0\n",
    "source": "das Haus .\nja\n",
    "target": "the house .\nyes indeed\n",
    "train.source": "das Haus das\n" * 5,
    "train.target": "the house . yes indeed\n",
}


def rows(result, **wanted):
    return [row for row in result["classes"] if all(row[key.rstrip("_")] == value for key, value in wanted.items())]


def test_json(files, align_eval):
    done = align_eval("errors", "--format", "json", "hyp", "other", *OPTIONS)
    assert (done.returncode, done.stderr) == (0, "")
    result = json.loads(done.stdout)
    assert list(result) == ["hypothesis", "against", "frequency", "sentences", "classes", "confusion", "signature"]
    values = [result[name] for name in ("hypothesis", "against", "frequency", "sentences")]
    assert values == ["hyp", "other", "texts", 2]
    (row,) = rows(result, by="word_type", side="target", class_="punctuation")
    assert row == {
        **{"by": "word_type", "side": "target", "class": "punctuation", "words": 1, "null_gold": 0},
        **{"null_hypothesis": 1, "hypothesis_links": 0, "sure_links": 1, "hypothesis_links_sure": 0},
        **{"hypothesis_links_possible": 0, "missed_sure": 1, "wrong_links": 0},
        **{"aer": 1, "precision": None, "recall": 0},
    }
    assert [list(row.values()) for row in result["confusion"]] == [
        ["sure", 1, 0, 2, 1],
        ["possible", 0, 1, 0, 0],
        ["none", 0, 1, 1, None],
    ]
    assert list(result["confusion"][0]) == ["gold", "both", "only_hypothesis", "only_other", "neither"]
    fields = dict(field.split(":", 1) for field in result["signature"].split("|"))
    files = {"against": "other", **{name: name for name in ("gold", "hyp", "source", "target")}}
    assert {name: fields[name] for name in files} == {n: content_hash([FILES[f].encode()]) for n, f in files.items()}
    assert (fields["metric"], fields["frequency"], fields["sentences"]) == ("errors", "texts", "2")


def test_training_frequency(files, call):
    status, out, err = call("errors", "--format", "json", *STATED, "--train-frequency", "train.source", "train.target")
    assert (status, err) == (0, "")
    result = json.loads(out)
    assert (result["frequency"], result["against"], result["confusion"]) == ("training", None, None)
    # das 10, Haus 5, "." and ja 0
    source = rows(result, by="frequency", side="source")
    assert [(row["class"], row["words"]) for row in source] == [("0", 2), ("2-9", 1), ("10-99", 1)]
    hashes = ",".join(content_hash([FILES[name].encode()]) for name in ("train.source", "train.target"))
    assert f"|frequency:{hashes}|" in result["signature"]


def test_words_that_the_training_texts_lack_are_told(files, call):
    status, out, err = call("errors", *STATED, "--train-frequency", "train.target", "train.target")
    assert (status, says(err, "warning: train.target: lacks 75 % of the source words")) == (0, True)
    assert "By frequency of the word in the training texts" in out
