"""Links of the built pages that lead nowhere: python .ci/links.py [FOLDER], by default docs/_build/html.

It prints how many pages, links and broken links there are, and exits with 1 if one is
broken. Addresses of other hosts are counted and not asked.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page links to, and the anchors that it has."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.path = path
        self.links = []
        self.anchors = {""}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect links and anchors."""
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            elif name in ("id", "name") and value is not None:
                self.anchors.add(value)


def broken(page: Page, link: str, anchors: dict[Path, set[str]]) -> bool:
    """Whether a link inside the site has no file, or a file without its anchor."""
    parts = urlsplit(link)
    target = (
        (page.path.parent / unquote(parts.path)).resolve() if parts.path else page.path
    )
    if target.is_dir():
        target /= "index.html"
    if not target.exists():
        return True
    return target in anchors and unquote(parts.fragment) not in anchors[target]


def main(folder: Path) -> int:
    """Check the pages of a folder.

    Parameters
    ----------
    folder : Path
        Where the pages were built.

    Returns
    -------
    int
        1 if a link is broken, else 0.
    """
    pages = [
        Page(path)
        for path in sorted(folder.resolve().rglob("*.html"))
        if "_static" not in path.parts
    ]
    anchors = {page.path: page.anchors for page in pages}
    inner = [
        (page, link)
        for page in pages
        for link in page.links
        if not urlsplit(link).scheme
    ]
    outer = sum(len(page.links) for page in pages) - len(inner)
    wrong = [(page, link) for page, link in inner if broken(page, link, anchors)]
    for page, link in wrong:
        print(f"{page.path.relative_to(folder.resolve())}: {link}")
    print(
        f"{len(pages)} pages, {len(inner):,} links, {outer:,} to other hosts, {len(wrong)} broken"
    )
    return int(bool(wrong) or not pages)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html")))
