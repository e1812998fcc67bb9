"""Files are found in the data folder or downloaded, and are what they should be."""

import bz2
import gzip
import hashlib
import lzma
from dataclasses import replace
from pathlib import Path

import pytest

import data_loaders
from data_loaders import Source
from data_loaders._dataset import File
from mmcnb.errors import InputError

PAGE = "https://example.org/page"
CONTENT = b"1,2,3\n" * 100
FILE = File("folder/name.data", None, hashlib.sha256(CONTENT).hexdigest())


@pytest.fixture(autouse=True)
def _no_data_dir(monkeypatch):
    monkeypatch.delenv("MMCNB_DATA_DIR", raising=False)


def put(folder: Path, content: bytes, suffix: str = "") -> Path:
    path = folder / (FILE.path + suffix)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("suffix", "pack"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress), (".bz2", bz2.compress)]
)
def test_a_file_is_found_as_it_is_or_packed(tmp_path, suffix, pack):
    path = put(tmp_path, pack(CONTENT), suffix)
    assert Source(tmp_path).find(FILE) == path
    assert Source(tmp_path).content(FILE, PAGE) == CONTENT


def test_the_environment_names_the_folder_and_an_argument_overrides_it(tmp_path, monkeypatch):
    put(tmp_path / "a", b"another file")
    put(tmp_path / "b", CONTENT)
    monkeypatch.setenv("MMCNB_DATA_DIR", str(tmp_path / "a"))
    with pytest.raises(InputError, match="sha256"):
        Source().content(FILE, PAGE)
    assert Source(tmp_path / "b").content(FILE, PAGE) == CONTENT


def test_a_file_that_is_published_packed_is_checked_packed_and_read_unpacked(tmp_path):
    packed = gzip.compress(CONTENT)
    path = put(tmp_path, packed, ".gz")
    file = File(f"{FILE.path}.gz", None, hashlib.sha256(packed).hexdigest())
    assert Source(tmp_path).content(file, PAGE) == CONTENT
    path.write_bytes(packed[:-5])
    with pytest.raises(InputError, match=r"name\.data\.gz is damaged .* get it again"):
        Source(tmp_path).content(replace(file, sha256=None), PAGE)


def test_a_wrong_hash_names_the_file_and_both_hashes(tmp_path):
    wrong = b"1,2,4\n"
    path = put(tmp_path, wrong)
    with pytest.raises(InputError) as caught:
        Source(tmp_path).content(FILE, PAGE)
    for part in (str(path), FILE.sha256, hashlib.sha256(wrong).hexdigest(), PAGE):
        assert part in str(caught.value)


@pytest.mark.parametrize("suffix", [".xz", ".gz", ".bz2"])
def test_a_damaged_archive_is_named(tmp_path, suffix):
    put(tmp_path, b"not an archive", suffix)
    with pytest.raises(InputError, match=r"name\.data\..* is damaged"):
        Source(tmp_path).content(FILE, PAGE)


def test_a_data_folder_that_is_none_is_named(tmp_path):
    with pytest.raises(InputError, match="nowhere is not a folder; set MMCNB_DATA_DIR"):
        Source(tmp_path / "nowhere").content(FILE, PAGE)


def test_a_download_is_made_once_and_kept(server, tmp_path):
    put(server.folder, CONTENT)
    source = Source(base_url=server.url, cache_dir=tmp_path / "cache")
    assert not source.has(FILE)
    assert source.content(FILE, PAGE) == CONTENT
    assert source.has(FILE)
    (server.folder / FILE.path).unlink()
    assert source.content(FILE, PAGE) == CONTENT


def test_the_publishers_address_is_used_where_no_server_is_named(server, tmp_path):
    put(server.folder, CONTENT)
    file = replace(FILE, url=f"{server.url}/folder/name.data")
    assert Source(cache_dir=tmp_path / "cache").content(file, PAGE) == CONTENT


def test_the_data_folder_comes_before_a_download(server, tmp_path):
    put(tmp_path / "data", CONTENT)
    source = Source(tmp_path / "data", base_url=server.url, cache_dir=tmp_path / "cache")
    assert source.content(FILE, PAGE) == CONTENT
    assert not (tmp_path / "cache").exists()


def test_a_download_with_a_wrong_hash_is_refused_and_not_kept(server, tmp_path):
    put(server.folder, b"something else")
    with pytest.raises(InputError) as caught:
        Source(base_url=server.url, cache_dir=tmp_path / "cache").content(FILE, PAGE)
    for part in (
        f"{server.url}/{FILE.path}",
        FILE.sha256,
        hashlib.sha256(b"something else").hexdigest(),
        PAGE,
    ):
        assert part in str(caught.value)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_file_the_server_does_not_have_says_what_to_set(server, tmp_path):
    with pytest.raises(InputError) as caught:
        Source(base_url=server.url, cache_dir=tmp_path / "cache").content(FILE, PAGE)
    assert str(caught.value) == (
        "folder/name.data is not in the data folder (MMCNB_DATA_DIR is not set), and "
        f"{server.url}/folder/name.data cannot be had (HTTP status 404): "
        f"get it from {PAGE} and set MMCNB_DATA_DIR to a folder that contains folder/name.data."
    )


def test_a_server_that_does_not_answer_says_so(tmp_path):
    source = Source(base_url="http://127.0.0.1:9", cache_dir=tmp_path / "cache")
    with pytest.raises(InputError, match=r"cannot be had \(ConnectionError\)"):
        source.content(FILE, PAGE)


def test_a_file_that_is_served_only_packed_is_to_be_unpacked_by_hand(tmp_path):
    with pytest.raises(InputError, match=rf"only packed \(\.Z\): get it from {PAGE} .*, unpacked\.$"):
        Source(tmp_path).content(FILE, PAGE)


def test_a_file_that_nobody_serves_is_to_be_put_into_the_data_folder(server, tmp_path):
    made = replace(FILE, made=True)
    with pytest.raises(InputError) as caught:
        Source().content(made, PAGE)
    assert str(caught.value) == (
        "folder/name.data is not in the data folder (MMCNB_DATA_DIR is not set), and nobody serves it, as it "
        f"was made from {PAGE}: set MMCNB_DATA_DIR to a folder that contains folder/name.data."
    )
    put(server.folder, CONTENT)
    assert Source(base_url=server.url, cache_dir=tmp_path / "cache").content(made, PAGE) == CONTENT


@pytest.mark.parametrize(
    ("name", "path"),
    [("mecs", "mecs/mecs.npz"), ("tweet-embedded", r"text/tweet\.sentence-embeddings\.float16\.npz")],
)
def test_sets_that_nobody_serves_name_their_file(tmp_path, name, path):
    with pytest.raises(
        InputError, match=rf"^{path} is not in .*: set MMCNB_DATA_DIR to a folder .* {path}\.$"
    ):
        data_loaders.load(name, source=Source(tmp_path))


def test_loading_takes_the_source(tiny, server, data_dir, tmp_path):
    (data_dir / "tiny").rename(server.folder / "tiny")
    X, y = data_loaders.load("tiny", source=Source(base_url=server.url, cache_dir=tmp_path / "cache"))
    assert X.shape == (3, 4)
    assert y.tolist() == [0, 1, 2]


def test_every_address_is_a_file_of_the_same_name():
    for dataset in data_loaders._registry.DATASETS.values():
        for file in dataset.files:
            if file.url is not None:
                assert file.url.startswith("https://")
                # The texts have names of their own, which say that they are texts.
                named = file.path.startswith("text/") or Path(file.url).name == Path(file.path).name
                assert named, file.path
            assert file.sha256 is None or len(bytes.fromhex(file.sha256)) == 32
