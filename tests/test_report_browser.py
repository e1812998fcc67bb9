"""The page of a fit in a headless Chromium, on a phone and a desk: nothing asked for, nothing cut off."""

import html
import importlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import mmcnb

pytestmark = pytest.mark.slow
SCRIPTS = Path(__file__).parent.parent / "docs" / "_scripts"
# Put into a copy of the page without its policy: the layout is left in the document at
# the end.
PROBE = """<script>
const boxes = [...document.querySelectorAll("main *")];
const report = document.createElement("pre");
for (const one of document.querySelectorAll("details")) one.open = true;
const inside = (one) => one.closest(".box") !== null && !one.matches(".box");
report.id = "layout";
report.textContent = JSON.stringify({
  inner: innerWidth,
  wide: document.documentElement.scrollWidth,
  beyond: boxes.filter((one) => !inside(one) && one.getBoundingClientRect().right > innerWidth + 1)
    .map((one) => one.tagName),
  cut: boxes.filter((one) => !inside(one) && one.scrollWidth > one.clientWidth + 1
    && !["auto", "scroll"].includes(getComputedStyle(one).overflowX) && one.clientWidth > 0)
    .map((one) => one.tagName),
  switched: [...document.querySelectorAll("fieldset input")].map((box) => {
    const dot = document.querySelector(".dots ." + box.id.replace("show-", ""));
    box.click();
    const off = getComputedStyle(dot).display;
    box.click();
    return [off, getComputedStyle(dot).display];
  }),
  ink: getComputedStyle(document.body).color,
  ground: getComputedStyle(document.body).backgroundColor,
  requests: performance.getEntriesByType("resource").map((entry) => entry.name)
    .filter((name) => !name.startsWith("data:")),
});
document.body.append(report);
</script>"""


@pytest.fixture(scope="module")
def tool():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(SCRIPTS)
        module = importlib.import_module("page")
    if module.CHROMIUM is None:
        pytest.skip("Chromium is not installed (Debian: apt install chromium)")
    return module


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """Twelve clusters in forty columns, one with a long name, and rows with long names."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 12
    X = pd.DataFrame(
        rng.normal(size=(300, 40)) + 9 * (np.arange(40) % 12 == y[:, None])
    )
    X = X.set_axis(
        [f"column_{'without_a_break_' * (j % 3)}{j}" for j in range(40)], axis=1
    )
    X.index = [f"{'row ' * 9}{k}<script>alert(1)</script>" for k in range(300)]
    path = tmp_path_factory.mktemp("page") / "page.html"
    mmcnb.MaximumMarginClustering(12, random_state=0).fit(X).write_report(X, path)
    return path


@pytest.mark.parametrize(("width", "is_dark"), [(360, True), (1600, False)])
def test_nothing_is_cut_off_or_asked_for(width, is_dark, page, tool, tmp_path):
    text = page.read_text(encoding="utf-8")
    probed = tmp_path / "probed.html"
    probed.write_text(
        re.sub(r"<meta http-equiv[^>]*>", "", text).replace(
            "</body>", f"{PROBE}</body>"
        ),
        encoding="utf-8",
    )
    options = {"width": width, "is_dark": is_dark}
    printed, _ = tool.browse(probed, "--dump-dom", **options)
    layout = json.loads(
        html.unescape(re.search(r'<pre id="layout">(.*?)</pre>', printed, re.DOTALL)[1])
    )
    assert layout["requests"] == layout["beyond"] == layout["cut"] == []
    assert layout["wide"] <= layout["inner"]
    assert len(layout["switched"]) >= 12
    assert all(states == ["none", "inline"] for states in layout["switched"])
    lightness = [
        sum(map(int, re.findall(r"\d+", layout[name])[:3]))
        for name in ("ink", "ground")
    ]
    assert (
        (lightness[0] > lightness[1] + 300)
        if is_dark
        else (lightness[1] > lightness[0] + 300)
    )
    _, logged = tool.browse(page, "--dump-dom", **options)
    assert "CONSOLE" not in logged


def test_axe_finds_no_fault(page, tool, monkeypatch):
    axe = os.environ.get("MMCNB_AXE")
    if axe is None:
        pytest.skip("MMCNB_AXE is not the path of axe.min.js (npm install axe-core)")
    monkeypatch.syspath_prepend(SCRIPTS)
    accessibility = importlib.import_module("accessibility")
    assert accessibility.main(Path(axe), page) == 0


def test_pictures_are_taken_by_their_command(page, tool, tmp_path):
    taken = tool.main(page, tmp_path, height=400)
    assert [path.name for path in taken] == [
        "phone-light.png",
        "phone-dark.png",
        "desk-light.png",
        "desk-dark.png",
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in taken)
