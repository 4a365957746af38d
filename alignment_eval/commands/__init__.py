"""The subcommands of ``align-eval``: each module has ``EPILOG``, ``add_arguments(parser)`` and ``run(args)``."""
