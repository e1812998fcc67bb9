"""Detect the encoding of text, and convert it to UTF-8 piece by piece."""

import codecs
from contextlib import suppress
from typing import IO

from mmcnb.errors import InputError, shown

UTF8 = "utf-8"
# Most files that are not UTF-8 come from Windows in Western Europe. As in browsers, the
# five bytes that cp1252 does not define are control characters of Latin-1.
WINDOWS = "cp1252"
_CHARACTERS_OF_WINDOWS = "".join(
    bytes([byte]).decode(WINDOWS, "ignore") or chr(byte) for byte in range(256)
)
# Byte order marks. The mark of UTF-32-LE begins with the mark of UTF-16-LE, so UTF-32
# comes first.
_MARKS = (
    (codecs.BOM_UTF8, UTF8),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
LEAST_ASCII = 0.05  # minimum fraction of ASCII characters in a table


def marked_codec(head: bytes) -> str | None:
    """Return the encoding given by a text's byte order mark, or None without a mark.

    Examples
    --------
    >>> from mmcnb.samples.transcode import marked_codec
    >>> marked_codec("a,b".encode("utf-16")), marked_codec(b"a,b")
    ('utf-16', None)
    """
    for mark, codec in _MARKS:
        if head.startswith(mark):
            return codec
    return None


def unmarked_utf16(head: bytes) -> str | None:
    """Return the UTF-16 codec of a text without a byte order mark, or None.

    The result is None if the text does not look like UTF-16, in which every second byte
    of ASCII text is 0.
    """
    n_half = len(head) // 2
    n_even = head[::2].count(0)
    n_odd = head[1::2].count(0)
    if LEAST_ASCII * n_half < n_odd and 10 * n_even < n_odd:
        return "utf-16-le"
    if LEAST_ASCII * n_half < n_even and 10 * n_odd < n_even:
        return "utf-16-be"
    return None


def encoded(text: bytes, codec: str) -> bytes:
    """Convert UTF-8 text to another encoding, with "?" for unsupported characters.

    Examples
    --------
    >>> from mmcnb.samples.transcode import encoded
    >>> encoded("café".encode(), "cp1252")
    b'caf\\xe9'
    """
    if codec == UTF8:
        return text
    characters = text.decode()
    if codec == WINDOWS:
        table = codecs.charmap_build(_CHARACTERS_OF_WINDOWS)
        return codecs.charmap_encode(characters, "replace", table)[0]
    return characters.encode(codec, "replace")


def mark_and_codec(head: bytes, codec: str) -> tuple[bytes, str]:
    """Return a text's byte order mark, and the codec of the text after this mark."""
    for mark, name in _MARKS:
        if head.startswith(mark) and name == codec:
            is_little = mark in (codecs.BOM_UTF32_LE, codecs.BOM_UTF16_LE)
            order = "" if name == UTF8 else "-le" if is_little else "-be"
            return mark, name + order
    return b"", codec


def checked_codec(name: object) -> str:
    """Return Python's name for an encoding.

    Raises
    ------
    InputError
        If Python does not know the encoding, or if it is not a text encoding.
    """
    with suppress(LookupError, ValueError):
        info = codecs.lookup(str(name))
        if getattr(info, "_is_text_encoding", True):  # False for "hex", for example
            return info.name
    raise InputError(
        f"encoding={shown(name)} is unknown: pass one that Python knows, such as "
        "'utf-8' or 'cp1252'."
    )


class UTF8Reader:
    """A reader that converts text in any encoding to UTF-8 without a byte order mark.

    If lines end with a single carriage return, it is replaced by a line feed.

    Parameters
    ----------
    file : file
        The text, as a binary file.
    codec : str
        Python's name for the encoding. UTF-8 is not decoded here; the parser detects
        invalid bytes.
    name : str
        Name used for the file in messages.

    Examples
    --------
    >>> import io
    >>> from mmcnb.samples.transcode import UTF8Reader
    >>> UTF8Reader(io.BytesIO(b"caf\\xe9,1\\r2,3\\r"), "cp1252", "a.csv").read(100)
    b'caf\\xc3\\xa9,1\\n2,3\\n'
    """

    def __init__(self, file: IO[bytes], codec: str, name: str) -> None:
        self._file = file
        self._codec = codec
        self._name = name
        self._decoder = None
        if codec not in (UTF8, WINDOWS):
            self._decoder = codecs.getincrementaldecoder(codec)()
        self._n_lines = 0
        self._is_start = True
        self._has_cr_ends: bool | None = None
        self._held = b""  # a carriage return at the end, if a line feed may follow

    def read(self, size: int) -> bytes:
        """Return about ``size`` bytes, or no bytes at the end of the text."""
        text = b""
        is_end = False
        while not text and not is_end:
            data = self._file.read(size)
            is_end = not data
            text = self._with_line_feeds(self._as_utf8(data), is_end)
        return text

    def _as_utf8(self, data: bytes) -> bytes:
        text = data
        if self._codec == WINDOWS:
            characters = _CHARACTERS_OF_WINDOWS
            text = codecs.charmap_decode(data, "strict", characters)[0].encode()
        elif self._decoder is not None:
            text = self._decoded(data)
        if self._is_start and text:
            self._is_start = False
            text = text.removeprefix(codecs.BOM_UTF8)
        return text

    def _decoded(self, data: bytes) -> bytes:
        assert self._decoder is not None
        try:
            text = self._decoder.decode(data, final=not data).encode()
        except UnicodeError as error:
            line = ""
            if isinstance(error, UnicodeDecodeError):
                before = error.object[: error.start].decode(self._codec, "ignore")
                line = f", line {self._n_lines + before.count(chr(10)) + 1}"
            other = "latin-1" if self._codec != "latin-1" else UTF8
            raise InputError(
                f"{self._name}{line}: this is not {self._codec} text: pass another "
                f"encoding (--encoding {other})."
            ) from error
        self._n_lines += text.count(b"\n")
        return text

    def _with_line_feeds(self, text: bytes, is_end: bool) -> bytes:
        """Replace carriage returns by line feeds if the first line has no line feed."""
        if self._has_cr_ends is False:
            return text
        text = self._held + text
        self._held = b""
        if self._has_cr_ends is None:
            place = text.find(b"\r")
            feed = text.find(b"\n")
            if 0 <= feed and (place < 0 or feed <= place + 1):
                self._has_cr_ends = False
            elif place >= 0 and (place < len(text) - 1 or is_end):
                self._has_cr_ends = True
            elif place >= 0:
                self._held = b"\r"
                text = text[:-1]
        if self._has_cr_ends:
            return text.replace(b"\r", b"\n")
        return text
