"""Scale rows to unit length, so that only their directions matter."""

from mmcnb.graph.nodes import finite
from mmcnb.samples.derived import DerivedSamples
from mmcnb.samples.matrix import Block, CSRBlock, as_matrix


class UnitSamples(DerivedSamples):
    """Rows scaled to unit length; rows of zeros are left unchanged."""

    def derive(self, rows: Block) -> Block:
        """Return the rows scaled to unit length, in the same dtype."""
        return unit_rows(rows)


def unit_rows(rows: Block) -> Block:
    """Scale the rows of a block or matrix to unit length, in the same dtype.

    Examples
    --------
    >>> import numpy as np
    >>> from mmcnb.features.directions import unit_rows
    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]]))
    array([[0.6, 0.8],
           [0. , 0. ]])
    """
    from sklearn.preprocessing import normalize
    from sklearn.utils.extmath import row_norms

    matrix = as_matrix(rows)
    # Raise an error if a length overflows, because the row would become a row of zeros.
    finite(row_norms)(matrix)
    unit = normalize(matrix)
    if isinstance(rows, CSRBlock):
        return rows._replace(data=unit.data)
    return unit
