"""Text in encodings other than UTF-8: found, or as it is told, and a sentence about it."""

import pytest

import mmcnb
from mmcnb import open_samples
from mmcnb.samples.transcode import UTF8Reader
from mmcnb.stores import convert
from tests.samples.common import COMPRESS, one_sentence

CITIES = ["Zürich", "Genève", "Köln"]
TEXT = "größe,stadt\n" + "".join(f"{i % 7}.5,{CITIES[i % 3]}\n" for i in range(60))
NAMES = ["größe", "stadt_Genève", "stadt_Köln", "stadt_Zürich"]


def names_and_notes(path, **options):
    samples = mmcnb.read_table(path, **options)
    assert samples.n_samples == 60
    assert samples.block(0, 3)[:, 0].tolist() == [0.5, 1.5, 2.5]
    return samples.feature_names, list(samples.notes)


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize(
    ("codec", "note"),
    [
        ("utf-8", None),
        ("utf-8-sig", None),
        ("utf-16", None),
        ("utf-32", None),
        ("utf-16-le", "was read as utf-16-le text"),
        ("utf-16-be", "was read as utf-16-be text"),
        ("cp1252", "was read as cp1252 text, because line 1 is not UTF-8"),
        ("latin-1", "was read as cp1252 text"),
    ],
)
def test_an_encoding_is_found(tmp_path, codec, note, ending):
    path = tmp_path / f"a.csv{ending}"
    path.write_bytes(COMPRESS[ending](TEXT.encode(codec)))
    names, notes = names_and_notes(path)
    assert names == NAMES
    assert len(notes) == (note is not None)
    if note:
        assert note in notes[0]
        assert "--encoding" in notes[0]
    assert names_and_notes(path, encoding=codec) == (NAMES, [])


@pytest.mark.usefixtures("pieces")
@pytest.mark.parametrize("ends", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("codec", ["utf-8", "utf-16", "cp1252"])
def test_ends_of_lines_in_any_encoding(tmp_path, codec, ends):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.replace("\n", ends).encode(codec))
    assert names_and_notes(path)[0] == NAMES


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
def test_other_scripts_in_utf16_without_a_mark(tmp_path, codec):
    path = tmp_path / "a.csv"
    text = "都市の名前,国の名前\n" + "ロサンゼルス,アメリカ\nミュンヘン,ドイツ\n" * 20
    path.write_bytes(text.encode(codec))
    samples = mmcnb.read_table(path)
    assert samples.feature_names[0].startswith("都市の名前_")


def test_marks_of_windows_are_its_characters(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + b"1,\x80\n2,\x93x\x94\n3,\x81\n" * 20)
    samples = mmcnb.read_table(path)
    assert samples.feature_names == ["a", "b_\x81", "b_“x”", "b_€"]


def test_other_encodings_are_told(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes("größe,stadt\n1,東京\n2,大阪\n".encode("cp932", "replace"))
    samples = mmcnb.read_table(path, encoding="shift_jis")
    assert samples.feature_names[1:] == ["stadt_大阪", "stadt_東京"]
    for name in ("utf-9", "hex", 8):
        with one_sentence(r"encoding=.* is unknown: pass one that Python knows"):
            mmcnb.read_table(path, encoding=name)
    with one_sentence(r"line 2: this is not ascii text: .*--encoding latin-1"):
        mmcnb.read_table(path, encoding="ascii")
    assert mmcnb.read_table(path, encoding="latin-1").n_samples == 2
    with one_sentence(r"line 2: this is not UTF-8 text: .*--encoding cp1252"):
        mmcnb.read_table(path, encoding="utf-8")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_late_line_shows_the_encoding(tmp_path, ending):
    path = tmp_path / f"a.csv{ending}"
    rows = "".join(f"{i % 9},{i % 5}.5,{'abc'[i % 3]}\n" for i in range(400_000))
    text = ("x,y,z\n" + rows + "1,2,é\n").encode("cp1252")
    path.write_bytes(COMPRESS[ending](text))
    samples = mmcnb.read_table(path)
    assert samples.n_samples == 400_001
    assert samples.feature_names == ["x", "y", "z_a", "z_b", "z_c", "z_é"]
    assert "line 400002 is not UTF-8" in samples.notes[0]
    report = convert(path, tmp_path / "a.zarr")
    assert open_samples(tmp_path / "a.zarr").n_samples == 400_001
    assert report["notes"] == list(samples.notes)


def test_each_file_of_a_folder_has_its_own_encoding(tmp_path):
    for number, codec in enumerate(["cp1252", "utf-8", "utf-16"]):
        (tmp_path / f"{number}.csv").write_bytes(TEXT.encode(codec))
    samples = mmcnb.read_table(tmp_path)
    assert samples.feature_names == NAMES
    assert samples.n_samples == 180
    (note,) = samples.notes
    assert "0.csv was read as cp1252" in note


def test_a_broken_utf8_file_is_no_other_encoding(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(TEXT.encode() + b"3,caf\xe9\n")
    with one_sentence("line 62: this is not UTF-8 text, but other lines are: .*cp1252"):
        mmcnb.read_table(path)
    assert mmcnb.read_table(path, encoding="cp1252").n_samples == 61


def test_nul_bytes_are_left_out(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a,b\n" + b"1,2\n3,\x004\n" * 20 + bytes(500))
    samples = mmcnb.read_table(path)
    assert samples.block(0, 2).tolist() == [[1, 2], [3, 4]]
    assert samples.n_samples == 40
    assert "520 NUL bytes were removed" in samples.notes[0]
    path.write_bytes(bytes(range(256)) * 90)
    with one_sentence("this is neither text nor UTF-16"):
        mmcnb.read_table(path)


def test_a_model_keeps_the_encoding_and_marked_files_have_theirs(tmp_path, rng):
    lines = ["größe,stadt"]
    for i in range(90):
        lines.append(f"{rng.normal() + 10 * (i % 3):.3f},{CITIES[i % 3]}")
    path = tmp_path / "a.csv"
    path.write_bytes("\n".join(lines).encode("cp850"))
    table = mmcnb.read_table(path, encoding="cp850")
    model = mmcnb.MaximumMarginClustering(3, random_state=0).fit(table)
    model.save(tmp_path / "model")
    loaded = mmcnb.load(tmp_path / "model")
    assert (loaded.predict(str(path)) == model.labels_).all()
    path.write_bytes("\n".join(lines).encode("utf-16"))
    assert (loaded.predict(str(path)) == model.labels_).all()


@pytest.mark.parametrize("size", [3, 4, 7, 1000])
@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_text_is_the_same_in_pieces_of_any_size(tmp_path, codec, size):
    for ends in ("\n", "\r\n", "\r"):
        text = TEXT.replace("\n", ends)
        path = tmp_path / "a.csv"
        path.write_bytes(text.encode(codec))
        with path.open("rb") as file:
            # Utf-8 with a mark is what files of UTF-8 are read as.
            reader = UTF8Reader(file, codec.removesuffix("-sig"), "a.csv")
            pieces = []
            while not pieces or pieces[-1]:
                pieces.append(reader.read(size))
        expected = text if ends != "\r" else TEXT
        assert b"".join(pieces).decode() == expected
