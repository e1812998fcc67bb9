"""Each reader on a few lines in the publisher's form."""

from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import data_loaders
from data_loaders import (
    Source,
    adult,
    made,
    mnist,
    optdigits,
    ringnorm,
    scikit_feature,
    svmguide1,
    texts,
    uci,
    uci_copies,
    usps,
)
from mmcnb.errors import InputError


def only(blocks):
    [block] = blocks
    return block


def line(values, separator=","):
    return separator.join(map(str, values)).encode() + b"\n"


def test_adult_keeps_the_classes_and_numbers_columns_from_zero():
    X, y = only(adult.read_libsvm(b"-1 3:1 123:1 \n+1 1:1 \n"))
    assert X.shape == (2, 123)
    assert X.toarray().nonzero()[1].tolist() == [2, 122, 0]
    assert y.tolist() == [-1, 1]


def test_echocardiogram_drops_the_unknown_class_and_fills_with_column_means():
    text = (
        b"11,0,71,0,0.26,9,4.6,14,1,1,name,1,0\n"
        b"19,1,?,1,?,6,4.1,14,1.7,0.5,name,1,0\n"
        b",?,?,77,?,?,?,?,?,2,?,name,2,?\n"
        b"?,0,61,0,0.5,?,3.1,12,1,0.7,name,1,?\n"
    )
    X, y = only(uci.read_echocardiogram(text))
    assert y.tolist() == [0, 1, 0]
    assert X.tolist() == [
        [11, 71, 0, 0.26, 9, 4.6, 14, 1],
        [19, 66, 1, 0.38, 6, 4.1, 14, 1.7],
        [15, 61, 0, 0.5, 7.5, 3.1, 12, 1],
    ]


def test_spectf_takes_the_class_from_the_first_column_of_both_files():
    train, test = line([1, *range(44)]), b"0, " + line(range(44, 88), ", ").replace(b"\n", b"\r\n")
    (X1, y1), (X2, y2) = uci.read_spectf(train, test)
    assert X1.tolist() == [list(range(44))]
    assert X2.tolist() == [list(range(44, 88))]
    assert (y1.tolist(), y2.tolist()) == ([1], [0])


@pytest.mark.parametrize(
    ("read", "separator"), [(uci.read_class_last, ","), (uci.read_spaced_class_last, "  ")]
)
def test_the_class_is_the_last_column(read, separator):
    X, y = only(read(line([1, 2.5, -3, 2], separator) + line([4, 5, 6, 1], separator)))
    assert X.tolist() == [[1, 2.5, -3], [4, 5, 6]]
    assert y.tolist() == [2, 1]


def test_ionosphere_numbers_good_and_bad():
    X, y = only(uci.read_ionosphere(b"1,0,0.5,g\n0,0,-0.25,b\n"))
    assert X.tolist() == [[1, 0, 0.5], [0, 0, -0.25]]
    assert y.tolist() == [1, 0]


def test_house_votes_sets_an_unknown_vote_between_yes_and_no():
    X, y = only(uci.read_house_votes(b"republican,n,y,?\ndemocrat,?,y,y\n"))
    assert X.tolist() == [[-1, 1, 0], [0, 1, 1]]
    assert y.tolist() == [1, 0]


def test_clean1_drops_the_names_and_passes_over_a_blank_line():
    X, y = only(uci.read_clean1(b"\nMUSK-188,188_1+1,42,-198,1.\nNON-MUSK-jp13,jp13_2+4,52,-121,0.\n"))
    assert X.tolist() == [[42, -198], [52, -121]]
    assert y.tolist() == [1, 0]


def test_breast_keeps_complete_rows_without_the_sample_number():
    X, y = only(uci.read_breast(b"1000025,5,1,2\n1057013,8,?,4\n1017122,8,10,4\n"))
    assert X.tolist() == [[5, 1], [8, 10]]
    assert y.tolist() == [2, 4]


def test_satellite_pools_the_first_two_classes_of_both_files():
    (X1, y1), (X2, y2) = uci.read_satellite(b"92 115 3\n84 102 1\n", b"80 102 2\n76 1 7\n")
    assert (X1.tolist(), y1.tolist()) == ([[84, 102]], [1])
    assert (X2.tolist(), y2.tolist()) == ([[80, 102]], [2])


def test_kr_vs_kp_codes_each_letter_in_one_column():
    X, y = only(uci.read_kr_vs_kp(b"f,t,g,l,b,n,w,won\nt,f,l,g,w,n,b,nowin\n"))
    assert X.tolist() == [[0, 1, 0, 1, 0, 0.5, 1], [1, 0, 1, 0, 1, 0.5, 0]]
    assert y.tolist() == [1, 0]


def test_waveform_leaves_out_class_0():
    X, y = only(uci.read_waveform(b"-0.23,1.5,2\n0.1,0.2,0\n0.5,-1,1\n"))
    assert X.tolist() == [[-0.23, 1.5], [0.5, -1]]
    assert y.tolist() == [2, 1]


def test_iris_numbers_the_species():
    X, y = only(uci.read_iris(b"6.3,3.3,6.0,2.5,Iris-virginica\n5.1,3.5,1.4,0.2,Iris-setosa\n\n"))
    assert X.tolist() == [[6.3, 3.3, 6.0, 2.5], [5.1, 3.5, 1.4, 0.2]]
    assert y.tolist() == [2, 0]


def test_optdigits_and_ringnorm():
    X, y = only(optdigits.read_optdigits(b"0,16,3,9\n"))
    assert (X.tolist(), y.tolist()) == ([[0, 16, 3]], [9])
    X, y = only(ringnorm.read_ringnorm(b"1.0,-4.5,0.25\n-1.0,1,2\n"))
    assert (X.tolist(), y.tolist()) == ([[-4.5, 0.25], [1, 2]], [1, -1])


def test_pendigits_is_one_file_or_both():
    train, test = b" 47,100, 27, 8\n  0, 89, 27, 2\n", b" 88, 92,  2, 8\n"
    (X1, y1), (X2, y2) = uci_copies.read_pendigits(train, test)
    assert (X1.tolist(), y1.tolist()) == ([[47, 100, 27], [0, 89, 27]], [8, 2])
    assert (X2.tolist(), y2.tolist()) == ([[88, 92, 2]], [8])


def test_wdbc_drops_the_number_of_the_patient():
    X, y = only(uci_copies.read_wdbc(b"842302,M,17.99,0.1184\n8510426,B,13.54,0.09779\n"))
    assert X.tolist() == [[17.99, 0.1184], [13.54, 0.09779]]
    assert y.tolist() == [1, 0]


def test_magic_numbers_gammas_and_hadrons():
    X, y = only(uci_copies.read_magic(b"28.7967,-8.2027,g\n93.7035,-1.5,h\n"))
    assert X.tolist() == [[28.7967, -8.2027], [93.7035, -1.5]]
    assert y.tolist() == [1, 0]


def test_letter_numbers_the_capitals():
    X, y = only(uci_copies.read_letter(b"T,2,8\nA,5,12\nZ,4,11\n"))
    assert X.tolist() == [[2, 8], [5, 12], [4, 11]]
    assert y.tolist() == [19, 0, 25]


def test_landsat_has_all_classes_of_both_files():
    (X1, y1), (X2, y2) = uci_copies.read_landsat(b"92 115 3\n84 102 1\n", b"76 1 7\n")
    assert (X1.tolist(), y1.tolist()) == ([[92, 115], [84, 102]], [3, 1])
    assert (X2.tolist(), y2.tolist()) == ([[76, 1]], [7])


def test_the_class_is_the_first_column():
    X, y = only(uci_copies.read_class_first(b"1,107,10.1\n3,113,9.9\n"))
    assert (X.tolist(), y.tolist()) == ([[107, 10.1], [113, 9.9]], [1, 3])


def test_dermatology_drops_the_age():
    X, y = only(uci_copies.read_dermatology(line([*range(33), "?", 6])))
    assert (X.tolist(), y.tolist()) == ([list(range(33))], [6])


def test_faults_numbers_the_column_that_is_1():
    flags = np.eye(7, dtype=int)[[6, 0]]
    X, y = only(uci_copies.read_faults(b"".join(line([*range(27), *row], "\t") for row in flags)))
    assert X.tolist() == 2 * [list(range(27))]
    assert y.tolist() == [7, 1]


def test_svmguide1_is_one_file_or_both():
    (X1, y1), (X2, y2) = svmguide1.read_svmguide1(b"1 1:26.173 4:125.1225\n", b"0 2:21.98210\n")
    assert (X1.tolist(), y1.tolist()) == ([[26.173, 0, 0, 125.1225]], [1])
    assert (X2.tolist(), y2.tolist()) == ([[0, 21.9821, 0, 0]], [0])


@pytest.mark.parametrize(
    ("dtype", "wanted"),
    [("uint8", np.array([[1, 0], [0.2, 1]], np.float32)), ("int16", [[255, 0], [51, 255]])],
)
def test_mat_files_divide_bytes_by_255_and_keep_other_numbers(dtype, wanted):
    file = BytesIO()
    savemat(file, {"X": np.array([[255, 0], [51, 255]], dtype), "Y": np.array([[-1], [1]], "int16")})
    X, y = only(scikit_feature.read_mat(file.getvalue()))
    np.testing.assert_array_equal(X, wanted)
    assert X.flags.c_contiguous
    assert (y.tolist(), y.dtype) == ([-1, 1], np.int64)


def test_texts_weigh_frequent_words_to_length_1():
    X, y = only(
        texts.read_texts(
            "3\tgrün tea\r\n8\tthe tea\tof\r\n3\ttea grün grün\r\n3\tgrün\r\n8\tice\r\n".encode()
        )
    )
    assert y.tolist() == [3, 8, 3, 3, 8]
    assert X.shape == (5, 2)  # grün, tea
    assert X.has_sorted_indices
    assert np.sqrt(X.multiply(X).sum(axis=1)).ravel().tolist()[0] == pytest.approx([1, 1, 1, 1, 0])


def npz(**arrays):
    file = BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_cells_and_embeddings():
    rows = np.array([[0.25, 1.5], [0, 3]], "float16")
    X, y = only(made.read_cells(npz(X=rows, y=np.array(["3", "1"]))))
    assert (X.tolist(), y.tolist()) == (rows.tolist(), [3, 1])
    X, y = only(made.read_embedded(npz(X=rows), b"7\tred rose\r\n2\twine\r\n"))
    assert (X.tolist(), y.tolist()) == (rows.tolist(), [7, 2])


def test_vowels_come_in_turn_and_nothing_is_unpickled():
    rows = np.arange(22 * 13).reshape(22, 13)
    X, y = only(made.read_vowel(npz(X=rows, y=np.array([print] * 22, object))))
    np.testing.assert_array_equal(X, rows[:, 3:])
    assert y.tolist() == 2 * list(range(11))


def idx(magic, array):
    return np.array([magic, *array.shape], ">i4").tobytes() + array.astype(np.uint8).tobytes()


def test_mnist_reads_pairs_of_idx_files_and_divides_by_255():
    images = np.arange(5 * 6, dtype=np.uint8).reshape(5, 2, 3) * 8
    labels = np.array([3, 1, 4, 1, 5])
    blocks = list(
        mnist.read_idx(idx(2051, images), idx(2049, labels), idx(2051, images[:2]), idx(2049, labels[:2]))
    )
    X = np.concatenate([block for block, _ in blocks])
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X[:5], (images / np.float32(255)).reshape(5, 6))
    assert np.concatenate([y for _, y in blocks]).tolist() == [3, 1, 4, 1, 5, 3, 1]


@pytest.mark.parametrize(
    "contents",
    [
        (idx(2050, np.zeros((1, 2, 2))), idx(2049, np.zeros(1))),
        (idx(2051, np.zeros((1, 2, 2))), idx(2049, np.zeros(2))),
        (idx(2051, np.zeros((1, 2, 2)))[:-1], idx(2049, np.zeros(1))),
        (idx(2051, np.zeros((1, 2, 2))), idx(2049, np.zeros(1))[:-1]),
    ],
    ids=["magic", "other number of labels", "short images", "short labels"],
)
def test_a_damaged_idx_file_is_refused(contents):
    with pytest.raises(ValueError):
        list(mnist.read_idx(*contents))


def zip_lines(digits, pixels):
    return b"".join(line([f"{digit}.0000", *row], " ") for digit, row in zip(digits, pixels, strict=True))


def test_usps_keeps_pixels_as_they_are():
    pixels = np.random.default_rng(0).uniform(-1, 1, (3, 256)).round(4)
    X, y = only(usps.read_zip(zip_lines([6, 0, 1], pixels)))
    np.testing.assert_array_equal(X, pixels.astype(np.float32))
    assert y.tolist() == [6, 0, 1]


def test_the_extended_form_is_every_shift_of_the_zeros_and_ones():
    digits = [6, *[0, 1] * 18]
    pixels = np.random.default_rng(0).uniform(-1, 1, (len(digits), 256)).round(4)
    blocks = list(usps.read_extended(zip_lines(digits, pixels)))
    assert len(blocks) > 1
    X, y = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    expected = [
        np.pad(image.reshape(16, 16), ((down, 10 - down), (right, 10 - right))).ravel()
        for image in (pixels[1:] + 1) / 2
        for down in range(11)
        for right in range(11)
    ]
    np.testing.assert_array_equal(X, np.array(expected, np.float32))
    assert y.tolist() == np.repeat(digits[1:], 121).tolist()


def made_text(rng, counts, n_features, letters=None, separator=","):
    """Lines in UCI's form with the class counts of the real set, in random order."""
    classes = rng.permutation(np.repeat(list(counts), list(counts.values())))
    values = rng.choice(letters or list("0123456789"), (len(classes), n_features))
    return b"".join(line([*row, label], separator) for row, label in zip(values, classes, strict=True))


def test_the_sets_that_are_published_without_a_known_hash_load_from_files_in_their_form(tmp_path: Path):
    rng = np.random.default_rng(0)
    others = {"3": 961, "4": 415, "5": 470, "7": 1038}
    contents = {
        "australian/australian.dat": made_text(rng, {"0": 383, "1": 307}, 14, separator=" "),
        "satellite/sat.trn": made_text(rng, {"1": 1072, "2": 479, **others}, 36, separator=" "),
        "satellite/sat.tst": made_text(rng, {"1": 461, "2": 224, "7": 1315}, 36, separator=" "),
        "kr-vs-kp/kr-vs-kp.data": made_text(rng, {"won": 1669, "nowin": 1527}, 36, list("ftglbnw")),
        "spambase/spambase.data": made_text(rng, {"0": 2788, "1": 1813}, 57),
    }
    for path, content in contents.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    source = Source(data_dir=tmp_path)
    shapes = {
        "australian": (690, 14),
        "satellite-1v2": (2236, 36),
        "kr-vs-kp": (3196, 36),
        "spambase": (4601, 57),
    }
    for name, shape in shapes.items():
        X, y = data_loaders.load(name, source=source)
        assert X.shape == shape
        assert X.dtype == np.float64
        assert len(np.unique(y)) == 2
    # One row more is another file, whatever it is called.
    with (tmp_path / "spambase/spambase.data").open("ab") as file:
        file.write(line(["0"] * 58))
    with pytest.raises(InputError, match=r"spambase/spambase\.data should have classes 0: 2788, 1: 1813 but"):
        data_loaders.load("spambase", source=source)
