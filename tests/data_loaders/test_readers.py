"""Each reader on a few lines in the publisher's form."""

from io import BytesIO

import numpy as np
import pytest
from scipy.io import savemat
from scipy.sparse import vstack

from data_loaders import (
    adult,
    made,
    mnist,
    ringnorm,
    scikit_feature,
    svmguide1,
    texts,
    uci,
    uci_copies,
    usps,
)

ECHOCARDIOGRAM = (
    b"11,0,71,0,0.26,9,4.6,14,1,1,name,1,0\n"
    b"19,1,?,1,?,6,4.1,14,1.7,0.5,name,1,0\n"
    b",?,?,77,?,?,?,?,?,2,?,name,2,?\n"
    b"?,0,61,0,0.5,?,3.1,12,1,0.7,name,1,?\n"
)
# A row of unknown class is dropped, and unknown values are the means of their columns.
HEARTS = [
    [11, 71, 0, 0.26, 9, 4.6, 14, 1],
    [19, 66, 1, 0.38, 6, 4.1, 14, 1.7],
    [15, 61, 0, 0.5, 7.5, 3.1, 12, 1],
]
CLEAN1 = b"\nMUSK-188,188_1+1,42,-198,1.\nNON-MUSK-jp13,jp13_2+4,52,-121,0.\n"
WDBC = b"842302,M,17.99,0.1184\n8510426,B,13.54,0.09779\n"
IRIS = b"6.3,3.3,6.0,2.5,Iris-virginica\n5.1,3.5,1.4,0.2,Iris-setosa\n\n"
SATELLITE = b"92 115 3\n84 102 1\n", b"80 102 2\n76 1 7\n"
DERMATOLOGY = b",".join(b"%d" % value for value in range(33)) + b",?,6\n"
CASES = [
    (uci.read_echocardiogram, [ECHOCARDIOGRAM], HEARTS, [0, 1, 0]),
    (
        uci.read_class_last,
        [b"1,2.5,-3,2\n4,5,6,1\n"],
        [[1, 2.5, -3], [4, 5, 6]],
        [2, 1],
    ),
    (uci.read_spaced_class_last, [b"1  2.5  2\n4 5 1\n"], [[1, 2.5], [4, 5]], [2, 1]),
    (
        uci.read_ionosphere,
        [b"1,0,0.5,g\n0,0,-0.25,b\n"],
        [[1, 0, 0.5], [0, 0, -0.25]],
        [1, 0],
    ),
    # An unknown vote lies between yes and no.
    (
        uci.read_house_votes,
        [b"republican,n,y,?\ndemocrat,?,y,y\n"],
        [[-1, 1, 0], [0, 1, 1]],
        [1, 0],
    ),
    (uci.read_clean1, [CLEAN1], [[42, -198], [52, -121]], [1, 0]),
    (
        uci.read_breast,
        [b"1000025,5,1,2\n1057013,8,?,4\n1017122,8,10,4\n"],
        [[5, 1], [8, 10]],
        [2, 4],
    ),
    (uci.read_satellite, SATELLITE, [[84, 102], [80, 102]], [1, 2]),
    (
        uci.read_kr_vs_kp,
        [b"f,g,b,w,won\nt,l,n,t,nowin\n"],
        [[0, 0, 0, 1], [1, 1, 0.5, 1]],
        [1, 0],
    ),
    (
        uci.read_waveform,
        [b"-0.23,1.5,2\n0.1,0.2,0\n0.5,-1,1\n"],
        [[-0.23, 1.5], [0.5, -1]],
        [2, 1],
    ),
    (uci.read_iris, [IRIS], [[6.3, 3.3, 6, 2.5], [5.1, 3.5, 1.4, 0.2]], [2, 0]),
    (
        ringnorm.read_ringnorm,
        [b"1.0,-4.5,0.25\n-1.0,1,2\n"],
        [[-4.5, 0.25], [1, 2]],
        [1, -1],
    ),
    (
        uci_copies.read_pendigits,
        [b" 47,100, 8\n", b"  0, 89, 2\n"],
        [[47, 100], [0, 89]],
        [8, 2],
    ),
    (uci_copies.read_wdbc, [WDBC], [[17.99, 0.1184], [13.54, 0.09779]], [1, 0]),
    (
        uci_copies.read_letter,
        [b"T,2,8\nA,5,12\nZ,4,11\n"],
        [[2, 8], [5, 12], [4, 11]],
        [19, 0, 25],
    ),
    (uci_copies.read_dermatology, [DERMATOLOGY], [[*range(33)]], [6]),
    (
        svmguide1.read_svmguide1,
        [b"1 1:2.5 4:9\n", b"0 2:3\n"],
        [[2.5, 0, 0, 9], [0, 3, 0, 0]],
        [1, 0],
    ),
]


def read_all(read, *contents):
    """The rows and classes of all blocks."""
    blocks, classes = zip(*read(*contents), strict=True)
    rows = (
        np.concatenate(blocks) if isinstance(blocks[0], np.ndarray) else vstack(blocks)
    )
    return rows, np.concatenate(classes)


@pytest.mark.parametrize(("read", "contents", "rows", "classes"), CASES)
def test_lines_in_the_publishers_form_are_rows_and_classes(
    read, contents, rows, classes
):
    X, y = read_all(read, *contents)
    np.testing.assert_array_equal(X, np.asarray(rows, X.dtype))
    np.testing.assert_array_equal(y, classes)


def test_columns_of_the_census_and_classes_of_plates_are_numbered():
    X, y = read_all(adult.read_libsvm, b"-1 3:1 123:1 \n+1 1:1 \n")
    assert X.shape == (2, 123)
    assert X.toarray().nonzero()[1].tolist() == [2, 122, 0]
    assert y.tolist() == [-1, 1]
    rows = np.c_[np.ones((2, 27)), np.eye(7)[[6, 0]]].astype(int)
    lines = "\n".join("\t".join(map(str, row)) for row in rows)
    X, y = read_all(uci_copies.read_faults, lines.encode())
    np.testing.assert_array_equal(X, np.ones((2, 27)))
    assert y.tolist() == [7, 1]


@pytest.mark.parametrize(("dtype", "scale"), [("uint8", 255), ("int16", 1)])
def test_mat_files_divide_bytes_by_255_and_keep_other_numbers(dtype, scale):
    rows = np.array([[255, 0], [51, 255]], dtype)
    file = BytesIO()
    savemat(file, {"X": rows, "Y": np.array([[-1], [1]], "int16")})
    X, y = read_all(scikit_feature.read_mat, file.getvalue())
    np.testing.assert_array_equal(X, (rows / scale).astype(X.dtype))
    assert y.tolist() == [-1, 1]


def test_texts_weigh_frequent_words_to_length_1():
    lines = "3\tgrün tea\r\n8\tthe tea\tof\r\n3\ttea grün grün\r\n3\tgrün\r\n8\tice\r\n"
    X, y = read_all(texts.read_texts, lines.encode())
    assert y.tolist() == [3, 8, 3, 3, 8]
    assert X.shape == (5, 2)  # grün, tea
    assert X.multiply(X).sum(axis=1).ravel().tolist()[0] == pytest.approx(
        [1, 1, 1, 1, 0]
    )


def npz(**arrays):
    file = BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_arrays_are_read_and_nothing_is_unpickled():
    rows = np.array([[0.25, 1.5], [0, 3]], "float16")
    X, y = read_all(made.read_cells, npz(X=rows, y=np.array(["3", "1"])))
    assert (X.tolist(), y.tolist()) == (rows.tolist(), [3, 1])
    X, y = read_all(made.read_embedded, npz(X=rows), b"7\tred rose\r\n2\twine\r\n")
    assert (X.tolist(), y.tolist()) == (rows.tolist(), [7, 2])
    vowels = np.arange(22 * 13).reshape(22, 13)
    X, y = read_all(made.read_vowel, npz(X=vowels, y=np.array([print] * 22, object)))
    np.testing.assert_array_equal(X, vowels[:, 3:])
    assert y.tolist() == 2 * list(range(11))


def idx(magic, array):
    return (
        np.array([magic, *array.shape], ">i4").tobytes()
        + array.astype(np.uint8).tobytes()
    )


def test_mnist_reads_pairs_of_idx_files_and_divides_by_255():
    images = np.arange(30).reshape(5, 2, 3) * 8
    labels = np.array([3, 1, 4, 1, 5])
    files = [
        idx(2051, images),
        idx(2049, labels),
        idx(2051, images[:2]),
        idx(2049, labels[:2]),
    ]
    X, y = read_all(mnist.read_idx, *files)
    expected = np.r_[images, images[:2]].reshape(7, 6).astype(np.float32) / 255
    np.testing.assert_array_equal(X, expected)
    assert y.tolist() == [3, 1, 4, 1, 5, 3, 1]
    for damaged in (
        [idx(2050, images), files[1]],
        [files[0], files[3]],
        [files[0][:-1], files[1]],
        [files[0], files[1][:-1]],
    ):
        with pytest.raises(ValueError):
            read_all(mnist.read_idx, *damaged)


def test_the_extended_usps_is_every_shift_of_the_zeros_and_ones():
    digits = np.array([6, *[0, 1] * 18])
    pixels = np.random.default_rng(0).uniform(-1, 1, (len(digits), 256)).round(4)
    file = BytesIO()
    np.savetxt(file, np.c_[digits, pixels], fmt="%.4f")
    X, y = read_all(usps.read_zip, file.getvalue())
    np.testing.assert_array_equal(X, pixels.astype(np.float32))
    np.testing.assert_array_equal(y, digits)
    X, y = read_all(usps.read_extended, file.getvalue())
    expected = [
        np.pad(image.reshape(16, 16), ((down, 10 - down), (right, 10 - right))).ravel()
        for image in (pixels[1:] + 1) / 2
        for down in range(11)
        for right in range(11)
    ]
    np.testing.assert_array_equal(X, np.array(expected, np.float32))
    assert y.tolist() == np.repeat(digits[1:], 121).tolist()
