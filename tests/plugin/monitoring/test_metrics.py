"""The names that monitoring logs are those that ``align-eval curve`` takes apart."""

from __future__ import annotations

from alignment_eval.figures.training_log import Metric
from fairseq_norm_plugin.monitoring.metrics import KIND_LETTERS, metric_name


def test_metrics_that_the_monitor_logs_are_known() -> None:
    for kind, letter in KIND_LETTERS.items():
        assert Metric.of(metric_name(3, kind, "awi")) == Metric(f"aer_l3_{letter}_awi", 3, letter, "awi", True, "lower")
