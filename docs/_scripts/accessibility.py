"""List the faults of pages that axe-core finds: python docs/_scripts/accessibility.py AXE PAGE..., with npm's axe.min.js."""

import html
import json
import re
import sys
import tempfile
from pathlib import Path

from page import browse

PHONE, DESK = 390, 1280  # CSS pixels
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
# Appended to a copy of the page. The script writes the faults into the document.
RUN = """<script>{axe}</script>
<script>
addEventListener("load", async () => {{
  // Scripts of the page have changed it by then.
  await new Promise((done) => setTimeout(done, 2000));
  for (const one of document.querySelectorAll("details")) one.open = true;
  const found = await axe.run(document, {{runOnly: {rules}, preload: false}});
  const report = document.createElement("pre");
  report.id = "axe";
  report.textContent = JSON.stringify(found.violations.map((fault) => ({{
    rule: fault.id, help: fault.help, impact: fault.impact,
    places: fault.nodes.map((node) => node.html.slice(0, 200)),
  }})));
  document.body.append(report);
}});
</script></body>"""


def faults_of(axe: Path, page: Path, width: int, is_dark: bool) -> list[dict]:
    """Return the rules of axe that a page violates, with the elements that violate them."""
    text = re.sub(r"<meta http-equiv[^>]*>", "", page.read_text(encoding="utf-8"))
    run = RUN.format(axe=axe.read_text(encoding="utf-8"), rules=json.dumps(RULES))
    before, _, after = text.rpartition("</body>")
    # The copy is beside the page, so that the style sheets of the page are found.
    with tempfile.NamedTemporaryFile("w", suffix=".html", dir=page.parent) as copy:
        copy.write(before + run + after)
        copy.flush()
        printed, logged = browse(
            Path(copy.name),
            "--virtual-time-budget=60000",
            "--dump-dom",
            width=width,
            is_dark=is_dark,
        )
    found = re.search(r'<pre id="axe">(.*?)</pre>', printed, re.DOTALL)
    if found is None:
        raise SystemExit(f"{page}: axe did not finish: {logged[-2000:]}")
    return json.loads(html.unescape(found[1]))


def main(axe: Path, *pages: Path) -> int:
    """Print the faults of each page in light and dark, narrow and wide windows; return their number."""
    count = 0
    for page in pages:
        for width in (PHONE, DESK):
            for is_dark in (False, True):
                faults = faults_of(axe, page, width, is_dark)
                count += len(faults)
                scheme = "dark" if is_dark else "light"
                print(f"{page}, {width} px, {scheme}: {len(faults)} faults")
                for fault in faults:
                    places = len(fault["places"])
                    print(f"  {fault['rule']} ({fault['impact']}), {places} times")
                    print(f"    {fault['help']}; first: {fault['places'][0]}")
    return count


if __name__ == "__main__":
    sys.exit(bool(main(*map(Path, sys.argv[1:]))))
