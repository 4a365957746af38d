"""What was drawn on Axes: the cells of a map or a heatmap, and texts."""

from matplotlib.collections import QuadMesh


def meshes(axes):
    """The meshes of cells on ``axes``, from the left."""
    return [drawn for drawn in axes.collections if isinstance(drawn, QuadMesh)]


def picture_texts(axes):
    """Labels of the columns and rows, and the title."""
    columns, rows = (
        [label.get_text() for label in labels] for labels in (axes.get_xticklabels(), axes.get_yticklabels())
    )
    return columns, rows, axes.get_title(loc="left")


def marks_of(axes):
    """The cells (column, row) of the marks of each series, by the id of its group in SVG."""
    return {line.get_gid(): [*zip(*line.get_data())] for line in axes.lines}
