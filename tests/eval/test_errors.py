from alignment_eval.errors import InputError, UsageError, warn_on_stderr


def test_a_warning_is_a_printable_line_on_the_standard_error(capsys):
    warn_on_stderr("3 lines are \x1b[2J\n")
    assert capsys.readouterr() == ("", "warning: 3 lines are \\x1b[2J\\n\n")


def test_every_message_is_one_printable_line():
    """Whatever puts text of files and arguments into it."""
    text = f"{'x' * 10**6}: \x1b[2J is not {'y ' * 10**6}\n"
    for error in (InputError(text), UsageError(text)):
        assert str(error).startswith("x" * 80 + r"… \x1b[2J is not y y ")
        assert str(error).isprintable()
        assert len(str(error)) < 2100
    path = f"/{'long directory ' * 10}/{'n' * 250}"
    assert str(InputError(f"{path}: no such file")) == f"{path}: no such file"  # names of files stay whole
