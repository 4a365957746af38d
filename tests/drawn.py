"""The cells of a map or a heatmap that was drawn."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh


def meshes(axes: Axes) -> list[QuadMesh]:
    """The meshes of cells on ``axes``, from the left."""
    return [drawn for drawn in axes.collections if isinstance(drawn, QuadMesh)]
