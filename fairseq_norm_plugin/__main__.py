"""``python -m fairseq_norm_plugin`` prints the path to give to ``--user-dir``; ``--help`` the options of its tasks."""

import sys
from argparse import ArgumentParser
from pathlib import Path


def main() -> None:
    """Print the path, or the help."""
    if sys.argv[1:]:
        parser = ArgumentParser(
            usage="python -m fairseq_norm_plugin [--help]",
            description="Without an option: print the path to give to --user-dir.  The options below belong to "
            "fairseq-generate, fairseq-interactive, fairseq-train and fairseq-validate with --task translation_norm, "
            "translation_multi_simple_epoch_norm (no --aer-…) or translation_from_pretrained_bart_norm.",
        )
        import fairseq_norm_plugin.tasks  # noqa: F401  # fairseq is imported there first

        # isort: split
        from fairseq.dataclass.utils import gen_parser_from_dataclass

        from fairseq_norm_plugin.hooks.criterion import GuidedAlignmentConfig
        from fairseq_norm_plugin.hooks.options import MonitorConfig, NormConfig

        for title, options in (
            ("maps (docs/get-started.md)", NormConfig),
            ("alignment in training and validation (docs/monitoring.md)", MonitorConfig),
            ("--criterion guided_alignment (docs/guided.md)", GuidedAlignmentConfig),
        ):
            gen_parser_from_dataclass(parser.add_argument_group(title), options())
        parser.parse_args()
        parser.error("give no option, or --help: these are options of fairseq's commands")
    print(Path(__file__).resolve().parent)


if __name__ == "__main__":
    main()
