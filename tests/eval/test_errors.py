import pytest

from alignment_eval.errors import InputError, UsageError, shown, warn_on_stderr


def test_a_warning_is_a_printable_line_on_the_standard_error(capsys):
    warn_on_stderr("3 lines are \x1b[2J\n")
    assert capsys.readouterr() == ("", "warning: 3 lines are \\x1b[2J\\n\n")


def test_bad_usage_is_bad_input_too():
    """One ``except InputError`` catches both; callers of the Python interface may catch ValueError."""
    assert issubclass(UsageError, InputError)
    assert issubclass(InputError, ValueError)


class Lines:
    def __repr__(self):
        return "one\ntwo\x1b"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("Müller", "'Müller'"),
        ("\x1b[31m\u202e\ud800\n", r"'\x1b[31m\u202e\ud800\n'"),
        ([1, "a"], "[1, 'a']"),
        (None, "None"),
        ("x" * 10**6, "'" + "x" * 76 + "…"),
        (Lines(), r"one\ntwo\x1b"),
    ],
)
def test_foreign_values(value, text):
    assert len(shown(value)) <= 80
    assert shown(value)[:77] == text[:77]


def test_every_message_is_one_printable_line():
    """Whatever puts text of files and arguments into it."""
    text = f"{'x' * 10**6}: \x1b[2J is not {'y ' * 10**6}\n"
    for error in (InputError(text), UsageError(text)):
        assert str(error).startswith("x" * 80 + r"… \x1b[2J is not y y ")
        assert str(error).isprintable()
        assert len(str(error)) < 2100
    path = f"/{'long directory ' * 10}/{'n' * 250}"
    assert str(InputError(f"{path}: no such file")) == f"{path}: no such file"  # names of files stay whole
