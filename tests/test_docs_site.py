"""The documentation site: complete, strict about links, and without a request to the network."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from docs.hooks.settings_page import default_of, sections, settings_of, type_name
from protocon.methods import METHODS
from protocon.settings.config import known_keys
from tests.test_docs_examples import DOCS, ROOT

# mkdocs and its plugins use things that newer versions of their own libraries deprecate.
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as `make docs` builds it; a warning would be an error."""
    place = tmp_path_factory.mktemp("site")
    build(load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(place)))
    return place


def settings() -> dict[str, Any]:
    """Entries of mkdocs.yml."""
    content: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    return content


def nav_pages(entries: Any) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    children = entries.values() if isinstance(entries, dict) else entries
    return [page for child in children for page in nav_pages(child)]


def test_every_page_is_in_the_navigation() -> None:
    assert {page.name for page in DOCS.glob("*.md")} <= set(nav_pages(settings()["nav"]))


def test_pages_load_nothing_from_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) >= 20
    loads = r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//[^"]+|<link[^>]+href="(?:https?:)?//[^"]+'
    assert [found for page in pages for found in re.findall(loads, page.read_text(encoding="utf-8"))] == []
    styles = [file.read_text(encoding="utf-8") for file in site.rglob("*.css")]
    assert styles
    assert not any(re.search(r"url\([\"']?(?:https?:)?//", style) for style in styles)


def test_every_setting_is_in_the_reference(site: Path) -> None:
    text = (site / "settings.html").read_text(encoding="utf-8")
    for method in METHODS:
        assert f'id="method-{method}"' in text
        for names in known_keys(method).values():
            assert [name for name in names if f"<code>{name}</code>" not in text] == []


def test_the_reference_has_type_default_and_meaning() -> None:
    (data, *_), methods = [list(settings_of(model)) for _, _, model in sections()], METHODS["protocon"].Config
    per_class = next(row for row in data if row.key == "labels_per_class")
    assert (per_class.type, per_class.default) == ("integer ≥ 1 or null", "`null`")
    assert per_class.meaning.startswith("Draw this many labels of each class")
    alpha = next(row for row in settings_of(methods) if row.key == "alpha")
    assert (alpha.type, alpha.default) == ("number ≥ 0 and ≤ 1", "`0.8`")
    threshold = next(row for row in settings_of(methods) if row.key == "threshold")  # of a base class
    assert threshold.meaning.startswith("τ")
    assert default_of(methods.model_fields["prototype_labelled"]) == "`true`"
    assert type_name(bool) == "true or false"


def test_every_setting_has_a_meaning() -> None:
    blank = [f"{title}: {row.key}" for title, _, model in sections() for row in settings_of(model) if not row.meaning]
    assert blank == []


def test_every_public_name_is_in_the_api_reference(site: Path) -> None:
    import protocon

    text = (site / "reference.html").read_text(encoding="utf-8")
    assert [name for name in protocon.__all__ if f'id="protocon.{name}"' not in text] == []


def test_the_readme_is_the_home_page_and_its_links_work(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert 'href="guide.html"' in text
    assert "docs/guide.md)" not in text
    assert (site / "benchmarks" / "results" / "scale.png").is_file()


@pytest.mark.parametrize(("link", "fine"), [("other.md", True), ("lost.md", False), ("other.md#lost", False)])
def test_a_broken_link_fails(tmp_path: Path, link: str, fine: bool) -> None:
    """With our rules for links on two pages of their own."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text(f"# Home\n\n[away]({link})\n")
    (tmp_path / "docs" / "other.md").write_text("# Other\n")
    rules = {"site_name": "two pages", "theme": "mkdocs", "validation": settings()["validation"], "plugins": []}
    (tmp_path / "mkdocs.yml").write_text(yaml.safe_dump(rules))
    config = load_config(str(tmp_path / "mkdocs.yml"), strict=settings()["strict"])
    if fine:
        build(config)
    else:
        with pytest.raises(Abort):
            build(config)
