"""The cells of a map or a heatmap that was drawn."""

from matplotlib.collections import QuadMesh


def meshes(axes):
    """The meshes of cells on ``axes``, from the left."""
    return [drawn for drawn in axes.collections if isinstance(drawn, QuadMesh)]
