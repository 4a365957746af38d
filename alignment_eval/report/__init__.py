"""The HTML report of a run: figures and maps in one page that needs no network.

:mod:`~alignment_eval.report.build` computes, :mod:`~alignment_eval.report.encoding` packs what the browser unpacks,
:mod:`~alignment_eval.report.page` writes HTML.
"""
