#!/usr/bin/env python3
"""Checks that each relative link of a folder of HTML pages leads to a file, and to an element of it if it names one.

    packaging/book_links.py FOLDER
"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The links and the ids of a page."""

    def __init__(self, path: pathlib.Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list) -> None:
        values = dict(attributes)
        self.ids.update(values[key] for key in ("id", "name") if values.get(key))
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])


def main() -> int:
    folder = pathlib.Path(sys.argv[1]).resolve()
    # These two repeat other pages: one to print, one for any address.
    pages = {path: Page(path) for path in folder.rglob("*.html") if path.name not in ("print.html", "404.html", "toc.html")}
    links, dead = 0, []
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            links += 1
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if target.is_dir():
                target = target / "index.html"
            fragment = urllib.parse.unquote(parts.fragment)
            is_page = target in pages or target.name == "print.html"
            if not target.is_file() or (fragment and (not is_page or fragment not in pages[target].ids)):
                dead.append(f"{path.relative_to(folder)}: {link}")
    print(f"{len(pages)} pages, {links} links, {len(dead)} dead", file=sys.stderr)
    print("\n".join(dead))
    return 1 if dead or links < 1000 else 0


sys.exit(main())
