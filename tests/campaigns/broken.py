"""No campaign: tries that fail in every way, for the tests of the runner."""

import os
import time
from pathlib import Path
from typing import Any

TRIES = 6
CI_TRIES = 6
SECONDS = 2


def attempt(seed: int, folder: Path) -> dict[str, Any]:
    """Seeds 0 and 1 are well; then an assertion, an error, a crash and a hang."""
    assert not any(folder.iterdir())
    (folder / "left behind").write_text("removed by the runner")
    if seed == 2:
        raise AssertionError("the answer\ndiffers")
    if seed == 3:
        raise KeyError("lost")
    if seed == 4:
        os._exit(1)
    if seed == 5:
        time.sleep(60)
    return {"answer": "same", "folder": str(folder)}
