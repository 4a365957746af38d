"""What a test asks of a message: its facts in order (place, value, option), not the words around."""

import re


def facts(text):
    """A regular expression for ``text``, in which " … " stands for any words between two facts."""
    return ".*".join(re.escape(part) for part in text.split(" … "))


def says(message, text):
    """Whether a message, or one line of several, has the facts of ``text`` in this order."""
    return re.search(facts(text), message or "") is not None


def content(directory):
    """All files in a directory: name -> bytes."""
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}
