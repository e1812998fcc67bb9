"""Servers, models, archives, headers, checkpoints, stores and names that mean harm.

Promised: what comes from a file or a server is answered by one sentence, or by an
answer that can be right. No try takes long or fills the memory, starts a program, asks
another host, or writes outside its folder. Names are text in HTML, never markup.

A try makes one hostile thing of a kind, reads it as a user would, and is judged by what
it answered, by the peak of resident memory, and by Python's audit events for
connections, programs and files opened to write.
"""

import copy
import gzip
import io
import json
import logging
import os
import random
import sys
import threading
import warnings
import zipfile
from collections.abc import Callable
from functools import cache
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

import mmcnb

# Internal: what a hostile file costs is measured as the library measures it.
from mmcnb._machine import peak_memory, resident_memory
from mmcnb.errors import InputError
from mmcnb.features.model import read_model, write_model

# Internal: a server that sends nothing is waited for in seconds, not minutes.
from mmcnb.samples import _remote, open_samples
from mmcnb.stores import convert, create_dense_store

TRIES = 220
CI_TRIES = 33
SECONDS = 60
MOST_GROWTH = 400 * 2**20
MARKUP = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "$x^{",
    "a\nb\x00\x1b[2J",
    "</table>",
)
DEEP = b'{"a":' * 10**5
HUGE = (-1, 0, 1, 2**31, 2**40, 2**63, 10**30, 1.5, "3", None, [], True, "x" * 10**6)

_events: list[str] = []
_watched: dict[str, Any] = {"folder": None, "ports": set()}


def _audit(event: str, given: tuple[Any, ...]) -> None:
    """Note what a try may not do; it cannot be taken back, so that it looks only while a try is made."""
    folder = _watched["folder"]
    if folder is None:
        return
    if (
        event == "socket.connect"
        and isinstance(given[1], tuple)
        and given[1][1] not in _watched["ports"]
    ):
        _events.append(f"connected to {given[1][:2]}")
    elif event in ("os.system", "subprocess.Popen", "os.exec"):
        _events.append(f"started {given[0]}")
    elif event == "open" and isinstance(given[0], str | bytes) and _writes(given):
        path = str(Path(os.fsdecode(given[0])).absolute())
        allowed = (str(folder), os.environ.get("NUMBA_CACHE_DIR", "\0"), "/dev/")
        if not path.startswith(allowed) and "__pycache__" not in path:
            _events.append(f"wrote {path}")


def _writes(given: tuple[Any, ...]) -> bool:
    return (
        bool(given[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if isinstance(given[2], int)
        else False
    )


@cache
def _hook() -> None:
    sys.addaudithook(_audit)


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """Make one hostile thing, read it, and judge the answer."""
    warnings.simplefilter("ignore")
    # a damaged pass is run again, and said to be
    logging.getLogger("mmcnb").setLevel(logging.ERROR)
    kind = list(KINDS)[seed % len(KINDS)]
    rng = random.Random(seed)
    _hook()
    _shared()  # what all tries need is not of this one
    what, ask = KINDS[kind](rng, folder)
    before = peak_from_here()
    _events.clear()
    _watched["folder"] = folder
    try:
        answer = answer_of(ask)
    finally:
        _watched["folder"] = None
    growth = peak_memory() - before
    assert not _events, f"{kind}, {what}: it {_events[0]}"
    assert growth < MOST_GROWTH, f"{kind}, {what}: memory grew by {growth >> 20} MiB"
    return {"kind": kind, "what": what, "answer": answer, "growth_mib": growth >> 20}


def answer_of(ask: Callable[[], Any]) -> str:
    """``refused`` after one sentence, otherwise what ``ask`` says of its answer."""
    try:
        return str(ask() or "answered")
    except InputError as error:
        sentence = str(error)
        assert "\n" not in sentence, f"more than a line: {sentence[:200]!r}"
        assert len(sentence) < 3000, f"{len(sentence)} characters: {sentence[:200]!r}"
        return "refused"


def peak_from_here() -> int:
    """Resident memory from which a peak is measured; the system's mark is set back where it can be."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return peak_memory()
    return resident_memory() or peak_memory()


# -- shared, untouched things ----------------------------------------------------------


@cache
def _rows() -> np.ndarray:
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 4)) + 6 * (np.arange(300) % 2)[:, None]


@cache
def _shared() -> dict[str, tuple[Any, Any]]:
    """Header and arrays of a model of each form, and the answers of the compiled routines."""
    import tempfile

    models = {
        "kernel": mmcnb.SparseKernelMMC(
            gamma=0.1, n_landmarks=6, n_init=1, scale="standard"
        ),
        "linear": mmcnb.CPMMC(),
        "least squares": mmcnb.UnsupervisedRLS(2, gamma=0.1, n_landmarks=6, n_init=1),
        "several kernels": mmcnb.MultipleKernelClustering(
            2, n_init=1, kernels=["linear", "rbf"]
        ),
        "graph": mmcnb.MaximumMarginClustering(2, kernel="graph", noise="auto"),
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, model in models.items():
            model.set_params(random_state=0).fit(_rows())
            model.save(f"{folder}/model")
            mmcnb.load(f"{folder}/model").predict(_rows())
            found[name] = read_model(f"{folder}/model")
    return found


def _store(folder: Path) -> Path:
    path = folder / "a.zarr"
    with create_dense_store(path, 4, chunk_rows=100) as writer:
        writer.append(_rows())
    return path


def _read(source: Any) -> str:
    samples = open_samples(source)
    assert samples.n_samples <= 10**7, "a table of more rows than anything here has"
    block = samples.block(0, min(samples.n_samples, 300))
    values = block if isinstance(block, np.ndarray) else block.data
    assert np.isfinite(values).all()
    same = block.shape == (300, 4) and np.array_equal(
        block, _rows().astype(block.dtype)
    )
    return "same" if same else "another table"


# -- servers ---------------------------------------------------------------------------


class _Handler(BaseHTTPRequestHandler):
    """Files of a folder; one of them in a hostile manner."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        server: Any = self.server
        try:
            content = (server.root / self.path.lstrip("/")).read_bytes()
        except OSError:
            content = None
        try:
            if (
                content is not None
                and self.path == server.path
                and self.command == "GET"
            ):
                MANNERS[server.manner](self, content)
            elif content is None:
                self.answer(404)
            else:
                self.answer(200, content)
        except OSError:
            self.close_connection = True

    do_HEAD = do_GET

    def answer(
        self,
        status: int,
        content: bytes = b"",
        length: int | None = None,
        **headers: str,
    ) -> None:
        self.send_response(status)
        self.send_header(
            "Content-Length", str(len(content) if length is None else length)
        )
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


def _endless(handler: Any, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Connection", "close")
    handler.end_headers()
    while True:
        handler.wfile.write(bytes(2**18))


def _drip(handler: Any, content: bytes) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    for byte in content[:60]:
        handler.wfile.write(bytes([byte]))
        threading.Event().wait(0.1)
    handler.close_connection = True


def _short(handler: Any, content: bytes) -> None:
    handler.answer(200, content[: len(content) // 2], length=len(content))
    handler.close_connection = True


def _long(handler: Any, content: bytes) -> None:
    handler.answer(200, content, length=2**40)
    handler.close_connection = True


def _elsewhere(to: str) -> Callable[[Any, bytes], None]:
    return lambda handler, content: handler.answer(302, Location=to)


MANNERS: dict[str, Callable[[Any, bytes], None]] = {
    "endless": _endless,
    "drip": _drip,
    "short": _short,
    "long": _long,
    "silent": lambda handler, content: threading.Event().wait(3) and None,
    "unpacked": lambda handler, content: handler.answer(
        200, gzip.compress(bytes(2**27)), Content_Encoding="gzip"
    ),
    "failing": lambda handler, content: handler.answer(500),
    "forbidden": lambda handler, content: handler.answer(403),
    "empty": lambda handler, content: handler.answer(200),
    "half": lambda handler, content: handler.answer(200, content[: len(content) // 2]),
    "page": lambda handler, content: handler.answer(200, b"<html>" * 1000),
    "deep": lambda handler, content: handler.answer(200, DEEP),
    "other host": _elsewhere("http://127.0.0.2:9/X"),
    "inner host": _elsewhere("http://169.254.169.254/latest"),
    "file": _elsewhere("file:///etc/hostname"),
    "loop": _elsewhere(""),
    "no place": lambda handler, content: handler.answer(302),
    "no status": lambda handler, content: (
        handler.wfile.write(b"HTTP/1.1 \r\n\r\n") and None
    ),
    "no words": lambda handler, content: handler.wfile.write(os.urandom(500)) and None,
    "twice": lambda handler, content: handler.answer(200, content * 2),
}


class _Server(ThreadingHTTPServer):
    """Says nothing of clients that hang up."""

    daemon_threads = True

    def handle_error(self, *_: Any) -> None:
        """Say nothing."""


@cache
def _server() -> Any:
    # type: ignore[assignment]
    _remote.PAUSES = (0.0, 0.0)
    _remote.SECONDS = 1.0
    server: Any = _Server(("127.0.0.1", 0), _Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    _watched["ports"].add(server.server_port)
    return server


def _try_server(rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any]]:
    server = _server()
    _store(folder)
    server.root = folder
    server.path = rng.choice(
        ["/a.zarr/zarr.json", "/a.zarr/X/zarr.json", "/a.zarr/X/c/1/0"]
    )
    server.manner = rng.choice(list(MANNERS))

    def ask() -> str:
        found = _read(f"http://127.0.0.1:{server.server_port}/a.zarr")
        assert found == "same", f"{found} from a server that was {server.manner}"
        return found

    return f"{server.manner} {server.path}", ask


# -- files -----------------------------------------------------------------------------


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Paths of all fields of a JSON object."""
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [
        place
        for key, part in inner
        for place in [(*path, key), *_places(part, (*path, key))][:200]
    ]


def spoil(rng: random.Random, document: Any) -> str:
    """Change a field at random."""
    path = rng.choice(_places(document))
    for key in path[:-1]:
        document = document[key]
    if rng.random() < 0.2 and isinstance(document, dict):
        del document[path[-1]]
        return f"without {path}"
    document[path[-1]] = value = rng.choice(
        (*HUGE, *MARKUP, {"a": 1}, float("nan"), -1e308)
    )
    return f"{path} is {str(value)[:20]!r}"


ARRAY_CHANGES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "half": lambda a: a[: len(a) // 2] if a.ndim else a,
    "twice": lambda a: np.concatenate((a, a)) if a.ndim else a,
    "another axis": lambda a: a[..., None],
    "flat": lambda a: a.ravel(),
    "empty": lambda a: a[:0] if a.ndim else a,
    "nan": lambda a: np.full(a.shape, np.nan),
    "infinite": lambda a: np.full(a.shape, np.inf),
    "huge": lambda a: (
        np.full(a.shape, 1e308) if a.dtype.kind == "f" else np.full(a.shape, 2**62)
    ),
    "negative": lambda a: -a - 1,
    "integers": lambda a: a.astype(np.int8),
    "complex": lambda a: a.astype(complex),
    "text": lambda a: a.astype("U8"),
    "swapped": lambda a: a.astype(a.dtype.newbyteorder()),
    "float16": lambda a: a.astype(np.float16),
}


def _try_model(rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any]]:
    form = rng.choice(list(_shared()))
    header, arrays = copy.deepcopy(_shared()[form])
    with np.errstate(all="ignore"):
        if rng.random() < 0.5:
            name = rng.choice(sorted(arrays))
            change = rng.choice(list(ARRAY_CHANGES))
            arrays[name], what = (
                ARRAY_CHANGES[change](arrays[name]),
                f"{name}: {change}",
            )
        else:
            what = spoil(rng, header)
    header.pop("arrays", None)
    write_model(folder / "model", header, arrays)

    def ask() -> str:
        model = mmcnb.load(folder / "model")
        with np.errstate(all="ignore"):
            labels = model.predict(_rows())
        assert labels.shape == (300,)
        noise = {-1} if form == "graph" else set()
        assert set(np.unique(labels)) <= {0, 1} | noise, "labels of no cluster"
        Page(str(model._repr_html_()))
        return "answered"

    return f"{form}, {what}", ask


def _try_archive(rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any]]:
    what = rng.choice(
        ["bomb", "traversal", "twice", "truncated", "claim", "deep", "names"]
    )
    form = rng.choice(["model", "npz", "zip"])
    whole = io.BytesIO()
    if form == "zip":
        import zarr

        with zarr.storage.ZipStore(folder / "whole.zip", mode="w") as store:
            zarr.create_array(
                store, shape=(300, 4), chunks=(100, 4), dtype="f8", compressors=None
            )[:] = _rows()
        whole = io.BytesIO((folder / "whole.zip").read_bytes())
    elif form == "npz":
        np.savez(whole, X=_rows(), y=np.arange(300) % 2)
    else:
        write_model(folder / "whole", *copy.deepcopy(_shared()["linear"]))
        whole = io.BytesIO((folder / "whole").read_bytes())
    with zipfile.ZipFile(whole) as archive:
        members = [(name, archive.read(name)) for name in archive.namelist()]
    place = rng.randrange(len(members))
    name, content = members[place]
    if what == "bomb":
        members[place] = name, content[:128] + bytes(2**28)
    elif what == "claim":
        members[place] = name, _npy_header(rng) + content[128:]
    elif what == "deep":
        members[place] = name, DEEP
    elif what == "traversal":
        members.append(
            (
                rng.choice(["../../evil", "/tmp/evil", "..\\evil"])
                + rng.choice(["", ".npy"]),
                content,
            )
        )
    elif what == "twice":
        members.append((name, content[::-1]))
    elif what == "names":
        members.append((rng.choice(MARKUP[:3]) + ".npy", content))
    path = folder / {"model": "bad.model", "npz": "bad.npz", "zip": "bad.zip"}[form]
    with zipfile.ZipFile(
        path, "w", zipfile.ZIP_DEFLATED if what == "bomb" else zipfile.ZIP_STORED
    ) as out:
        for member, text in members:
            out.writestr(member, text)
    if what == "truncated":
        path.write_bytes(path.read_bytes()[: -rng.randrange(1, 200)])

    def ask() -> str:
        if form == "model":
            return str(mmcnb.load(path).predict(_rows()).shape)
        if form == "zip":
            return _read(path)
        convert(path, folder / "out.zarr")
        return _read(folder / "out.zarr")

    return f"{form}, {what} {name}", ask


def _npy_header(rng: random.Random) -> bytes:
    shape = tuple(
        rng.choice((0, 1, 4, 300, 10**6, 2**31, 10**12, 2**62, -1))
        for _ in range(rng.randrange(4))
    )
    out = io.BytesIO()
    header = {
        "descr": rng.choice(("<f8", ">f4", "|u1", "<c16", "<U4", "|O", "<M8[s]")),
        "fortran_order": rng.random() < 0.3,
        "shape": shape,
    }
    np.lib.format.write_array_header_1_0(out, header)
    return out.getvalue()


def _try_npy(rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any]]:
    header = _npy_header(rng)
    if rng.random() < 0.3:
        spoiled = bytearray(header)
        spoiled[rng.randrange(len(spoiled))] = rng.randrange(256)
        header = bytes(spoiled)
    (folder / "a.npy").write_bytes(header + bytes(rng.choice((0, 100, 9600))))

    def ask() -> str:
        if rng.random() < 0.5:
            convert(folder / "a.npy", folder / "out.zarr")
            return _read(folder / "out.zarr")
        return _read(folder / "a.npy")

    return repr(header[10:80]), ask


def _try_checkpoint(rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any]]:
    store = _store(folder)
    place = folder / "checkpoint"
    model = mmcnb.CPMMC(random_state=0, checkpoint=place).fit(store)
    run = place / "run.json"
    passes = sorted((place / "passes").iterdir())
    what = rng.choice(["field", "deep", "link", "entry", "engine"])
    if what == "field":
        document = json.loads(run.read_text())
        what = spoil(rng, document)
        run.write_text(json.dumps(document))
    elif what == "deep":
        run.write_bytes(DEEP)
    elif what == "link":
        (place / rng.choice(["lock", "passes/x.part", "run.json.part"])).unlink(
            missing_ok=True
        )
        (place / rng.choice(["other", "run.json.part"])).symlink_to("/etc/hostname")
    elif what == "engine":
        document = json.loads(run.read_text())
        document["identity"] |= {"engine": "tcp://127.0.0.2:9"}
        document["engine"] = "tcp://127.0.0.2:9"
        run.write_text(json.dumps(document))
    elif passes:
        header = rng.choice((DEEP, b"{}", b'{"pass": "a", "total": {"array": "0"}}'))
        with zipfile.ZipFile(passes[0], "w") as archive:
            with archive.open("header.npy", "w") as file:
                np.lib.format.write_array(file, np.frombuffer(header, np.uint8))
            archive.writestr("0.npy", _npy_header(rng))

    def ask() -> str:
        again = mmcnb.CPMMC(random_state=0, checkpoint=place).fit(store)
        assert again.labels_.tobytes() == model.labels_.tobytes(), "another answer"
        return "same"

    return what, ask


def _try_attributes(rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any]]:
    import zarr

    foreign = rng.random() < 0.7
    store = folder / "a.zarr"
    if foreign:
        zarr.create_array(store, shape=(300, 4), chunks=(100, 4), dtype="f8")[:] = (
            _rows()
        )
        document_path = store / "zarr.json"
    else:
        _store(folder)
        document_path = rng.choice([store / "zarr.json", store / "X" / "zarr.json"])
    document = json.loads(document_path.read_text())
    if rng.random() < 0.15:
        document_path.write_bytes(DEEP)
        what = "deep"
    else:
        if foreign:
            names = [rng.choice(MARKUP) for _ in range(rng.choice((4, 4, 3)))]
            document["attributes"] = {"feature_names": names, "shape": [4, 300]}
        what = spoil(rng, document)
        document_path.write_text(json.dumps(document))

    def ask() -> str:
        found = _read(store)
        samples = open_samples(store)
        samples.feature_names
        return found

    return f"{document_path.relative_to(folder)}, {what}", ask


# -- names -----------------------------------------------------------------------------


class Page(HTMLParser):
    """Refuses scripts, and attributes that run, which can only come from a name here."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.feed(text)

    def handle_starttag(
        self, tag: str, attributes: list[tuple[str, str | None]]
    ) -> None:
        """Look for what a name has brought in."""
        assert tag != "img", "markup of a name in a page"
        assert not any(name.startswith("onerror") for name, _ in attributes), (
            "markup of a name in a page"
        )
        self.tag = tag

    def handle_data(self, data: str) -> None:
        """Look at scripts."""
        assert getattr(self, "tag", "") != "script" or "alert(1)" not in data, (
            "script of a name in a page"
        )


def _try_names(rng: random.Random, folder: Path) -> tuple[str, Callable[[], Any]]:
    name = rng.choice(MARKUP[:3] + MARKUP[4:])
    place = rng.choice(["notebook", "study"])

    def ask() -> str:
        if place == "notebook":
            header, arrays = copy.deepcopy(_shared()["linear"])
            header["report"] |= {
                "warnings": [name],
                "trust": {"level": name, "reason": name},
                name: name,
            }
            header["feature_names_in"] = [name, *"abc"]
            write_model(folder / "model", header, arrays)
            Page(str(mmcnb.load(folder / "model")._repr_html_()))
        else:
            _study(name, folder)
        return "text"

    return f"{place}, {name!r}", ask


def _study(name: str, folder: Path) -> None:
    from benchmarks.report import write_report
    from tests.benchmarks import frames

    rows = [
        row
        for seed in range(2)
        for row in frames.run(name, name, {"balanced_error": 0.1}, seed)
    ]
    frames.write(folder, "mnist", rows + frames.failed(name, name, name))
    Page(write_report(folder).read_text(encoding="utf-8"))


KINDS: dict[str, Callable[[random.Random, Path], tuple[str, Callable[[], Any]]]] = {
    "server": _try_server,
    "model": _try_model,
    "archive": _try_archive,
    "npy": _try_npy,
    "checkpoint": _try_checkpoint,
    "attributes": _try_attributes,
    "model again": _try_model,
    "server again": _try_server,
    "attributes again": _try_attributes,
    "names": _try_names,
    "archive again": _try_archive,
}
