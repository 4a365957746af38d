"""What was drawn on Axes."""


def picture_texts(axes):
    """Labels of the columns and rows, and the title."""
    columns = [label.get_text() for label in axes.get_xticklabels()]
    rows = [label.get_text() for label in axes.get_yticklabels()]
    return columns, rows, axes.get_title(loc="left")
