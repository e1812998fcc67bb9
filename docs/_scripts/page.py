"""Take pictures of a page of ``write_report`` with headless Chromium: python docs/_scripts/page.py PAGE FOLDER."""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chromium-headless-shell")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
FLAGS = (
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-sync",
    ),
    *(
        "--disable-background-networking",
        "--disable-component-update",
        "--hide-scrollbars",
    ),
    "--enable-logging=stderr",
)
WIDTHS = {"phone": 360, "desk": 1600}  # CSS pixels


def browse(
    page: Path, *options: str, width: int, height: int = 900, is_dark: bool = False
) -> tuple[str, str]:
    """Open a page in a window of a given width in pixels; return what Chromium prints and logs."""
    if CHROMIUM is None:
        raise SystemExit("Chromium is not installed (Debian: apt install chromium).")
    with tempfile.TemporaryDirectory() as profile:
        window = f"--user-data-dir={profile}", f"--window-size={width},{height}"
        scheme = f"--blink-settings=preferredColorScheme={0 if is_dark else 1}"
        command = [CHROMIUM, *FLAGS, *window, scheme, *options, page.resolve().as_uri()]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=120, check=True
        )
    return done.stdout, done.stderr


def main(page: Path, folder: Path, height: int = 3000) -> list[Path]:
    """Take a picture at each width, in light and dark; return the paths."""
    taken = []
    for name, width in WIDTHS.items():
        for is_dark in (False, True):
            path = folder / f"{name}-{'dark' if is_dark else 'light'}.png"
            browse(
                page,
                f"--screenshot={path.resolve()}",
                width=width,
                height=height,
                is_dark=is_dark,
            )
            taken.append(path)
    return taken


if __name__ == "__main__":
    print(*main(*map(Path, sys.argv[1:3])), sep="\n")
