"""The subcommands of ``align-eval``: each module has ``add_arguments(parser)`` and ``run(args)``."""
