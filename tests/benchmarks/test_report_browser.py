"""The report in a headless Chromium: no fault in the console, figures drawn, tables that sort, two widths."""

import html
import json
import re
import shutil
import subprocess

import pytest

from benchmarks.report import write_report
from tests.benchmarks import frames

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--enable-logging=stderr",
)
DESK = (1280, 900)
PHONE = (390, 844)
# Put into a copy of the page: faults are gathered first, what was found is left in the
# document at the end.
GATHER = """<script>
const faults = [];
addEventListener("error", (event) => faults.push(String(event.message)), true);
console.error = (...words) => faults.push(words.join(" "));
</script>"""
PROBE = """<script>
const column = (table, place) => [...table.tBodies[0].rows].map((row) => row.cells[place].textContent.trim());
const table = document.querySelector("#mnist table");
const [first, second, third] = [...table.tHead.rows[0].cells];
const button = second.querySelector("button");
button.focus();
const focused = document.activeElement === button;
button.click();
const ascending = [second.getAttribute("aria-sort"), column(table, 1)];
button.click();
const descending = [second.getAttribute("aria-sort"), column(table, 1)];
first.querySelector("button").click();
const named = [second.getAttribute("aria-sort"), first.getAttribute("aria-sort"), column(table, 0)];
const found = {
  faults, focused, ascending, descending, named,
  inner: innerWidth,
  wide: document.documentElement.scrollWidth,
  contents: document.getElementById("contents").open,
  nav: getComputedStyle(document.querySelector("nav")).position,
  figures: [...document.querySelectorAll("figure svg")].map((svg) => svg.getBoundingClientRect().width),
  inks: [...document.querySelectorAll("figure svg text")].map((text) => getComputedStyle(text).fill),
  ink: getComputedStyle(document.body).color,
  ground: getComputedStyle(document.body).backgroundColor,
  requests: performance.getEntriesByType("resource").map((entry) => entry.name),
};
const told = document.createElement("pre");
told.id = "found";
told.textContent = JSON.stringify(found);
document.body.append(told);
</script>"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        CHROMIUM is None,
        reason="Chromium is not installed (Debian: apt install chromium)",
    ),
]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frames")
    frames.write(folder, "mnist", frames.mnist())
    frames.write(folder, "eta", frames.eta())
    text = write_report(folder).read_text(encoding="utf-8")
    probed = folder / "probed.html"
    assert text.count("<head>") == text.count("</body>") == 1
    probed.write_text(
        text.replace("<head>", f"<head>{GATHER}").replace("</body>", f"{PROBE}</body>"),
        encoding="utf-8",
    )
    return probed


@pytest.fixture(scope="module")
def open_page(page, tmp_path_factory):
    """What the probe finds at a size of the window, in light or dark, and what the console says."""

    def look(size, dark):
        profile = tmp_path_factory.mktemp("profile")
        seen = subprocess.run(
            [
                CHROMIUM,
                *FLAGS,
                f"--user-data-dir={profile}",
                f"--window-size={size[0]},{size[1]}",
                f"--blink-settings=preferredColorScheme={0 if dark else 1}",
                "--dump-dom",
                page.as_uri(),
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )
        told = re.search(r'<pre id="found">(.*?)</pre>', seen.stdout, re.DOTALL)
        assert told, seen.stderr
        return json.loads(html.unescape(told.group(1))), [
            line for line in seen.stderr.splitlines() if ":CONSOLE" in line
        ]

    return look


@pytest.fixture(scope="module")
def desk(open_page):
    return open_page(DESK, dark=False)


@pytest.fixture(scope="module")
def phone(open_page):
    return open_page(PHONE, dark=True)


@pytest.mark.parametrize("where", ["desk", "phone"])
def test_the_console_has_no_fault_and_nothing_is_asked_for(where, request):
    found, console = request.getfixturevalue(where)
    assert found["faults"] == []
    assert console == []
    assert found["requests"] == []


@pytest.mark.parametrize("where", ["desk", "phone"])
def test_every_figure_is_drawn_and_the_page_is_not_wider_than_the_window(
    where, request
):
    found, _ = request.getfixturevalue(where)
    assert len(found["figures"]) == 3
    assert min(found["figures"]) > 250
    assert max(found["figures"]) <= found["inner"]
    assert found["wide"] <= found["inner"]


def test_a_header_sorts_by_value_both_ways_and_says_so(desk):
    found, _ = desk
    assert found["focused"]
    values = [float(text.partition(" ")[0]) for text in found["ascending"][1]]
    assert values == sorted(values)
    assert len(set(values)) > 1
    assert found["ascending"][0] == "ascending"
    assert found["descending"] == ["descending", found["ascending"][1][::-1]]
    assert found["named"] == ["none", "ascending", sorted(frames.PAIRS)]


def test_text_in_figures_has_the_ink_of_the_page_in_light_and_dark(desk, phone):
    for found, _ in (desk, phone):
        assert found["ink"] in found["inks"]
        assert "rgb(0, 0, 0)" not in found["inks"]
    assert desk[0]["ground"] != phone[0]["ground"]
    assert desk[0]["ink"] != phone[0]["ink"]
