"""Files are found in the data folder or downloaded, and are what they should be."""

import bz2
import gzip
import hashlib
import lzma
from types import SimpleNamespace

import pytest

import data_loaders
from data_loaders import Source
from mmcnb import InputError

PAGE = "https://example.org/page"
CONTENT = b"1,2,3\n" * 100
HASH = hashlib.sha256(CONTENT).hexdigest()
PACKINGS = {"": bytes, ".xz": lzma.compress, ".gz": gzip.compress, ".bz2": bz2.compress}


def file(path="folder/name.data", url=None, sha256=HASH, made=False):
    return SimpleNamespace(path=path, url=url, sha256=sha256, made=made)


@pytest.fixture(autouse=True)
def no_data_dir(monkeypatch):
    monkeypatch.delenv("MMCNB_DATA_DIR", raising=False)


def put(folder, content, suffix=""):
    path = folder / f"folder/name.data{suffix}"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("suffix", PACKINGS)
def test_a_file_is_found_as_it_is_or_packed(tmp_path, suffix):
    path = put(tmp_path, PACKINGS[suffix](CONTENT), suffix)
    assert Source(tmp_path).find(file()) == path
    assert Source(tmp_path).content(file(), PAGE) == CONTENT
    path.write_bytes(b"damaged")
    with pytest.raises(
        InputError, match=r"name\.data.* is (damaged|not the file that was published)"
    ):
        Source(tmp_path).content(file(), PAGE)


def test_a_file_that_is_published_packed_is_checked_packed_and_read_unpacked(tmp_path):
    packed = gzip.compress(CONTENT)
    path = put(tmp_path, packed, ".gz")
    published = file("folder/name.data.gz", sha256=hashlib.sha256(packed).hexdigest())
    assert Source(tmp_path).content(published, PAGE) == CONTENT
    path.write_bytes(packed[:-5])
    published.sha256 = None
    with pytest.raises(InputError, match=r"name\.data\.gz is damaged .* get it again"):
        Source(tmp_path).content(published, PAGE)


def test_the_environment_names_the_folder_and_an_argument_overrides_it(
    tmp_path, monkeypatch
):
    path = put(tmp_path / "a", b"another file")
    put(tmp_path / "b", CONTENT)
    monkeypatch.setenv("MMCNB_DATA_DIR", str(tmp_path / "a"))
    assert Source(tmp_path / "b").content(file(), PAGE) == CONTENT
    with pytest.raises(InputError) as caught:
        Source().content(file(), PAGE)
    for part in (str(path), HASH, hashlib.sha256(b"another file").hexdigest(), PAGE):
        assert part in str(caught.value)


def test_a_file_comes_from_the_folder_else_once_from_a_server(server, tmp_path):
    url, served = server
    path = put(served, CONTENT)
    put(tmp_path / "data", CONTENT)
    assert (
        Source(tmp_path / "data", url, tmp_path / "cache").content(
            file(made=True), PAGE
        )
        == CONTENT
    )
    assert not (tmp_path / "cache").exists()
    published = file(url=f"{url}/folder/name.data")
    source = Source(cache_dir=tmp_path / "cache")
    assert not source.has(published)
    assert source.content(published, PAGE) == CONTENT
    path.unlink()
    assert source.has(published)
    assert source.content(published, PAGE) == CONTENT


def test_a_download_with_a_wrong_hash_is_refused_and_not_kept(server, tmp_path):
    url, served = server
    put(served, b"something else")
    with pytest.raises(InputError) as caught:
        Source(base_url=url, cache_dir=tmp_path / "cache").content(file(), PAGE)
    for part in (
        f"{url}/folder/name.data",
        HASH,
        hashlib.sha256(b"something else").hexdigest(),
        PAGE,
    ):
        assert part in str(caught.value)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_file_that_cannot_be_had_says_what_to_set(server, tmp_path):
    url, _ = server
    missing = (
        "folder/name.data is not in the data folder (MMCNB_DATA_DIR is not set), and "
    )
    remedy = "set MMCNB_DATA_DIR to a folder that contains folder/name.data"
    cache = tmp_path / "cache"
    for source, asked, reason in (
        (
            Source(base_url=url, cache_dir=cache),
            file(),
            "cannot be downloaded (HTTP status 404): get it from",
        ),
        (
            Source(base_url="http://127.0.0.1:9", cache_dir=cache),
            file(),
            "cannot be downloaded (ConnectionError)",
        ),
        (Source(), file(), "its publisher serves it only packed (.Z): get it from"),
        (
            Source(),
            file(made=True),
            f"it cannot be downloaded, because it was made from {PAGE}",
        ),
        (
            Source(cache_dir=cache, download=False),
            file(url=url),
            "downloads are switched off",
        ),
    ):
        with pytest.raises(InputError) as caught:
            source.content(asked, PAGE)
        sentence = str(caught.value)
        assert sentence.startswith(missing)
        assert reason in sentence
        assert remedy in sentence
    with pytest.raises(InputError, match="nowhere is not a folder; set MMCNB_DATA_DIR"):
        Source(tmp_path / "nowhere").content(file(), PAGE)


def test_loading_takes_the_source(data_dir, server, tmp_path):
    url, served = server
    expected, _ = data_loaders.load("australian")
    (data_dir / "australian").rename(served / "australian")
    X, _ = data_loaders.load(
        "australian", source=Source(base_url=url, cache_dir=tmp_path / "cache")
    )
    assert X.tolist() == expected.tolist()
