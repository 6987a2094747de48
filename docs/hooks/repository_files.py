"""MkDocs hook: pages may link to any file of the repository, as on a code host, and the README is the home page.

Files outside `docs/` that a page links to become part of the site under the same path; links are rewritten to match.
A link to a file that does not exist is left as it is, and MkDocs reports it.
"""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[2]
HOME = "README.md"
PAGES = (HOME, "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md")
"""Pages of the site that lie outside `docs/`."""
_LINK = re.compile(r'(\]\(|\b(?:src|href)=")([^)\s"#:]+)')


def site_path(path: str) -> str:
    """Where a file of the repository is on the site: `docs/guide.md` is `guide.md`, the README is `index.md`."""
    return "index.md" if path == HOME else path.removeprefix("docs/")


def repository_path(site: str) -> str:
    """The reverse of `site_path`."""
    if site == "index.md":
        return HOME
    return f"docs/{site}" if (ROOT / "docs" / site).exists() else site


def links(text: str, page: str) -> Iterator[str]:
    """Files of the repository that a page links to.

    Args:
        text: the page's Markdown.
        page: its path in the repository.
    """
    for match in _LINK.finditer(text):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), match[2]))
        if (ROOT / target).is_file():
            yield target


def rewrite(text: str, page: str) -> str:
    """The page's Markdown with every link to a file of the repository pointing to its place on the site."""

    def moved(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(page), match[2]))
        if not (ROOT / target).is_file():
            return match[0]
        return match[1] + posixpath.relpath(site_path(target), posixpath.dirname(site_path(page)) or ".")

    return _LINK.sub(moved, text)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside `docs/`, and every file that any page links to."""
    waiting = [*PAGES, *(f"docs/{file.src_uri}" for file in files.documentation_pages())]
    done: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path in done or not (ROOT / path).is_file():
            continue
        done.add(path)
        if files.get_file_from_path(site_path(path)) is None:
            files.append(File.generated(config, site_path(path), abs_src_path=str(ROOT / path)))
        if path.endswith(".md"):
            waiting += links((ROOT / path).read_text(encoding="utf-8"), path)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Rewrite a page's links."""
    return rewrite(markdown, repository_path(page.file.src_uri))
