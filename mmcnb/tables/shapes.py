"""Shapes of texts, which are few where texts are many: 9 stands for each digit."""

import numpy as np
import pyarrow as pa

from mmcnb.tables.arrow import TEXT


def shapes_of_texts(texts: pa.Array) -> pa.Array:
    """Return texts with 9 for each digit but those that follow a letter, as in m2.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from mmcnb.tables.shapes import shapes_of_texts
    >>> texts = pa.array(["$1,250.00", "34 m2", "2024-11-28"], pa.large_string())
    >>> shapes_of_texts(texts).to_pylist()
    ['$9,999.99', '99 m2', '9999-99-99']
    """
    texts = pa.concat_arrays([texts])  # from the first byte on
    is_null, offsets, content = texts.buffers()
    if content is None:
        return texts
    codes = np.frombuffer(content, np.uint8)
    is_letter = (codes | 32) - ord("a") < 26  # numbers of bytes wrap around
    follows_letter = np.zeros(codes.size + 1, bool)
    follows_letter[1:] = is_letter | (codes == ord("^"))
    starts = np.frombuffer(offsets, np.int64, len(texts))
    follows_letter[starts] = False
    is_digit = (codes - ord("0") < 10) & ~follows_letter[:-1]
    shapes = np.where(is_digit, np.uint8(ord("9")), codes)
    buffers = [is_null, offsets, pa.py_buffer(shapes)]
    return pa.Array.from_buffers(TEXT, len(texts), buffers)
