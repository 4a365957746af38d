"""The HTML report of a run: figures and maps in one page that works without a network.

:mod:`~alignment_eval.report.build` computes the content, :mod:`~alignment_eval.report.encoding` packs it for the
browser, :mod:`~alignment_eval.report.page` writes HTML.
"""
