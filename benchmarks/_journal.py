"""The record of a study: one line a cell, written as soon as it is computed, and the tidy frame of it."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any

import pandas as pd

from benchmarks._cells import FAILED, KEYS, MEASURES, NO_DATA, OK, Cell, computed
from benchmarks._common import Options, say, versions, whole_file
from mmcnb.errors import InputError

FORMAT = 1
COLUMNS = [
    *("study", "part", "dataset", "protocol", "method", "parameters", "seed", "metric", "value"),
    *("seconds", "compile_seconds", "peak_mib", "n", "d", "status", "reason", "versions", "digest"),
]
Record = dict[str, Any]


class Journal:
    """What a study has computed so far, in ``DIR/STUDY.jsonl``.

    Parameters
    ----------
    study : str
        Name of the study.
    options : Options
        Folder, scale, rows, jobs, and whether failed cells are computed again.

    Raises
    ------
    InputError
        If the file there is damaged, or was written by another version, at another scale or with other rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from benchmarks._cells import Cell
    >>> from benchmarks._common import Options
    >>> from benchmarks._journal import Journal
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with Journal("example", Options(Path(folder))) as journal:
    ...         rows = journal.rows([Cell("heart", "guess", 0, lambda: {"error": 0.5})])
    >>> rows[["dataset", "method", "error", "status"]].to_numpy().tolist()
    [['heart', 'guess', 0.5, 'ok']]
    """

    def __init__(self, study: str, options: Options) -> None:
        if find_spec("pyarrow") is None:
            raise InputError("the frames need pyarrow: pip install 'mmcnb[benchmarks]'.")
        self.study, self.options = study, options
        self.path = options.out / f"{study}.jsonl"
        self.versions = versions()
        self._records = self._read()

    def rows(self, cells: Iterable[Cell]) -> pd.DataFrame:
        """Compute what is not recorded yet, and return a row a cell.

        Parameters
        ----------
        cells : iterable of Cell
            No two alike.

        Returns
        -------
        DataFrame
            In the order of `cells`: part, dataset, protocol, method, parameters (JSON text), seed, status,
            reason; each parameter and each metric as a column of its own, NaN where a cell has none.

        Raises
        ------
        InputError
            If there is not one cell that could be computed.
        ValueError
            If two cells have the same identity.
        """
        cells = list(cells)
        if len({cell.identity for cell in cells}) < len(cells):
            raise ValueError(f"{self.study}: two cells have the same identity.")
        done = (FAILED, OK) if not self.options.retry else (OK,)
        missing = [cell for cell in cells if self._status(cell) not in done]
        lost = self._compute(missing)
        rows = pd.DataFrame([self._wide(cell, lost.get(cell.identity, "")) for cell in cells])
        if not (rows["status"] == OK).any():
            raise InputError(f"no cell could be computed: {rows['reason'].iloc[0]}")
        return rows

    @property
    def failed(self) -> int:
        """How many of the recorded cells failed."""
        return sum(record["status"] == FAILED for record in self._records.values())

    def render(self) -> None:
        """Write the tidy frame of all that is recorded to ``DIR/STUDY.parquet``, whole or not at all."""
        if not self._records:
            return
        rows = [row for record in self._records.values() for row in self._tidy(record)]
        frame = pd.DataFrame(rows, columns=COLUMNS).astype({"value": float, "seed": "int64"})
        with whole_file(self.path.with_suffix(".parquet")) as aside:
            frame.to_parquet(aside, engine="pyarrow", index=False)

    def __enter__(self) -> Journal:
        """Begin a study."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Render the frame of what is there, at the end and when interrupted."""
        self.render()

    def _status(self, cell: Cell) -> str:
        return str(self._records.get(cell.identity, {}).get("status", ""))

    def _compute(self, cells: Sequence[Cell]) -> dict[tuple[Any, ...], str]:
        """Compute and record cells; return the reasons of those whose data cannot be had."""
        lost: dict[tuple[Any, ...], str] = {}
        for done, (cell, outcome) in enumerate(computed(cells, self.options.jobs), 1):
            name = f"{self.study} {done}/{len(cells)}: {' '.join(filter(None, cell.identity[:4]))}"
            if outcome["status"] == NO_DATA:
                if outcome["reason"] not in lost.values():
                    say(f"{cell.dataset} is left out: {outcome['reason']}")
                lost[cell.identity] = outcome["reason"]
                continue
            outcome = _checked(cell, outcome)
            self._append(cell, outcome)
            say(f"{name}, seed {cell.seed}: {outcome['reason'] or _seconds(outcome)}")
        return lost

    def _append(self, cell: Cell, outcome: Record) -> None:
        record = {
            **dict(zip(KEYS, cell.identity, strict=True)),
            "parameters": json.loads(str(cell.identity[KEYS.index("parameters")])),
            **outcome,
            "versions": self.versions | {"jobs": self.options.jobs},
        }
        if not self._records:
            self._write(self._header(), "w")
        self._write(record, "a")
        self._records[cell.identity] = record

    def _write(self, record: Record, mode: str) -> None:
        """Write one line, and wait until the disk has it: a run that is killed loses at most this line."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open(mode, encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _header(self) -> Record:
        return {
            "format": FORMAT,
            "study": self.study,
            "mmcnb": self.versions["mmcnb"],
            "scale": self.options.scale,
            "rows": self.options.rows,
        }

    def _read(self) -> dict[tuple[Any, ...], Record]:
        """The recorded cells by their identity; a last line that was torn is cut off."""
        if not self.path.exists():
            return {}
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if len(whole) < len(content):
            say(f"{self.path}: the last line was torn and is dropped")
            with self.path.open("r+b") as file:
                file.truncate(len(whole))
        lines = whole.splitlines()
        if not lines:
            return {}
        self._check_header(_parsed(lines[0], self.path, 1))
        records = [_parsed(line, self.path, place) for place, line in enumerate(lines[1:], 2)]
        return {_identity(record, self.path, place): record for place, record in enumerate(records, 2)}

    def _check_header(self, found: Record) -> None:
        for name, mine in self._header().items():
            if found.get(name) != mine:
                raise InputError(
                    f"{self.path} was written with {name} {found.get(name)!r}, this run has {mine!r}; "
                    "give another --out or delete it."
                )

    def _wide(self, cell: Cell, lost: str) -> Record:
        given = dict(zip(KEYS, cell.identity, strict=True))
        record = self._records.get(cell.identity, {"status": FAILED, "reason": lost, "found": {}})
        told = {name: record[name] for name in ("status", "reason")}
        measures = {name: record["found"].get(name, math.nan) for name in MEASURES}
        return given | told | dict(cell.parameters) | measures | record["found"]

    def _tidy(self, record: Record) -> list[Record]:
        """One row a metric; one without a metric where a cell has none."""
        found = record["found"]
        numbers = {
            name: float(value)
            for name, value in found.items()
            if name not in MEASURES and isinstance(value, int | float)
        }
        shared = {name: found.get(name, "" if name == "digest" else math.nan) for name in MEASURES}
        shared |= {name: record[name] for name in ("part", "dataset", "protocol", "method", "seed", "reason")}
        shared |= {"study": self.study, "status": record["status"]}
        shared |= {name: json.dumps(record[name], sort_keys=True) for name in ("parameters", "versions")}
        return [
            shared | {"metric": name, "value": value} for name, value in (numbers or {"": math.nan}).items()
        ]


def _checked(cell: Cell, outcome: Record) -> Record:
    """The outcome, or a failure where a metric has a name of the identity or cannot be recorded."""
    reserved = {*KEYS, "status", "reason", "versions", *cell.parameters}
    twice = sorted(reserved & set(outcome["found"]))
    unfit = sorted(
        name for name, value in outcome["found"].items() if not isinstance(value, str | int | float | None)
    )
    reason = (
        f"the name {twice[0]!r} is taken" if twice else f"{unfit[0]!r} is no number or text" if unfit else ""
    )
    return {"status": FAILED, "reason": reason, "found": {}} if reason else outcome


def _seconds(outcome: Record) -> str:
    return f"{outcome['found']['seconds']:.3g} s"


def _parsed(line: bytes, path: Path, place: int) -> Record:
    try:
        record = json.loads(line)
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise InputError(
            f"{path}, line {place}: this is no record; delete the line, or the file, and run again."
        )
    return record


def _identity(record: Record, path: Path, place: int) -> tuple[Any, ...]:
    lacking = [name for name in (*KEYS, "status", "reason", "found", "versions") if name not in record]
    if lacking:
        raise InputError(
            f"{path}, line {place}: the record lacks {lacking[0]!r}; "
            "delete the line, or the file, and run again."
        )
    return tuple(
        json.dumps(record[name], sort_keys=True) if name == "parameters" else record[name] for name in KEYS
    )
