"""Scrapy's own commands in a project that has the add-on: where one asks for a few pages, clusterd stands aside."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.crawler.site import Site

SPIDER = '''
import scrapy


class Pages(scrapy.Spider):
    name = "pages"
    start_urls = ["{url}"]

    def parse(self, response):
        """Takes a page.

        @url {url}
        @returns items 1 1
        """
        yield {{"url": response.url}}
'''


@pytest.fixture
def project(site: Site, tmp_path: Path) -> Path:
    """Return the folder of a project with one spider, of the page /page/1."""
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = made.settings\n")
    spiders = tmp_path / "made" / "spiders"
    spiders.mkdir(parents=True)
    for folder in (spiders.parent, spiders):
        (folder / "__init__.py").touch()
    (spiders / "pages.py").write_text(SPIDER.format(url=f"{site.url}/page/1"))
    (spiders.parent / "settings.py").write_text(
        'ADDONS = {"clusterd_crawler.Addon": 500}\nSPIDER_MODULES = ["made.spiders"]\nTELNETCONSOLE_ENABLED = False\n'
    )
    return tmp_path


def scrapy(project: Path, *arguments: str) -> str:
    """Run a command in the project; return what it said."""
    command = [sys.executable, "-m", "scrapy", *arguments]
    done = subprocess.run(command, cwd=project, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize(
    "command",
    [
        ["fetch", "--spider", "pages", "{url}"],
        ["parse", "--spider", "pages", "{url}"],
        ["shell", "{url}", "-c", "response.body"],
        ["check"],
    ],
    ids=" ".join,
)
def test_a_command_that_asks_for_a_page_starts_no_store(command: list[str], site: Site, project: Path) -> None:
    scrapy(project, *(word.format(url=f"{site.url}/page/1") for word in command))
    assert site.hits["/page/1"] == 1
    assert not (project / ".clusterd").exists()


@pytest.mark.parametrize("command", [["crawl", "pages"], ["runspider", "made/spiders/pages.py"]], ids=" ".join)
def test_a_command_that_crawls_has_its_store(command: list[str], site: Site, project: Path) -> None:
    assert "'clusterd/sketched': 1" in scrapy(project, *command)
    assert (project / ".clusterd").is_dir()
