"""The examples in the docstrings that a researcher meets first, run one after the other with one loaded model."""

import doctest
import inspect

import alignment_eval as ae
import fairseq_norm_plugin as fnp
from alignment_eval.alignment import Alignment, Alignments
from tests.integration.conftest import ROOT

MODEL = fnp.NormModel
DOCUMENTED = [fnp.load, MODEL.align, MODEL.maps, MODEL.translate, MODEL.transfer_markup]
DOCUMENTED += [Alignment.explain, Alignments.scores, ae.score, ae.class_shares]


def test_examples(monkeypatch):
    monkeypatch.chdir(ROOT)
    names, said = {"ae": ae}, []
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    for place, documented in enumerate(DOCUMENTED):
        test = doctest.DocTestParser().get_doctest(inspect.getdoc(documented), names, str(place), None, None)
        assert test.examples, documented
        test.globs = names  # what an example makes, the next ones use
        runner.run(test, out=said.append, clear_globs=False)
    assert not said, "".join(said)
    described = repr(names["model"])
    assert described.startswith("NormModel(de-en and en-de, "), described
    assert described.endswith(", profile: checkpoint.pt.align.json, table: checkpoint.pt.align.parquet)"), described
    blocks = names["model"].block_maps("Wir sind hier.", "We are here.", "encoder.self", "attn_n")
    assert repr(blocks) == "BlockMaps(encoder.self, attn_n, 3 layers, 4 heads, 5 × 5 tokens)"
    score = ae.score([{(0, 0)}], [ae.read_gold("data/demo/demo.talp", base=1)[0]])
    assert repr(score).startswith("Score(aer=0.")
    assert repr(score).endswith(", sentences=1)")
    assert dir(fnp) == sorted(fnp.__all__)
    assert all(f"``{name}``" in fnp.__doc__ for name in fnp.__all__)
