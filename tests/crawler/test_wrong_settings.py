"""What Scrapy's commands say where a setting of ours is wrong: one line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SPIDER = """
import scrapy

class Mine(scrapy.Spider):
    name = "mine"
    custom_settings = {"ADDONS": {"clusterd_crawler.Addon": 500}}
"""

WRONG = "CLUSTERD_SKIP = 'maybe' is not accepted; it takes true or false"


def scrapy(folder: Path, *words: str, script: str = SPIDER, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "mine.py").write_text(script)
    return subprocess.run(
        [sys.executable, "-m", "scrapy", *words],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ("CLUSTERD_SKIP=maybe", f"Scrapy settings: {WRONG}"),
        ("CLUSTERD_MODE=x", "Scrapy settings: there is no setting CLUSTERD_MODE"),
        ("CLUSTERD_KAFKA=kafkas://127.0.0.1:1?ca=/none", "ca = '/none' cannot be read: No such file or directory"),
        ("CLUSTERD_WORKERS=abc", "Scrapy settings: CLUSTERD_WORKERS = 'abc' is not accepted; it takes a whole number"),
        ("CLUSTERD_RULE_IDENTITY=alike", "it takes identical, words, unnumbered or near"),
        ('CLUSTERD_POLICIES={"near": 3}', "Scrapy settings: CLUSTERD_POLICIES: policy near = 3 is not accepted"),
    ],
)
def test_a_crawl_does_not_start_and_says_why_in_one_line(tmp_path: Path, wrong: str, says: str) -> None:
    done = scrapy(tmp_path, "runspider", "mine.py", "-s", wrong, "--loglevel", "WARNING")
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr


def test_what_an_embedded_daemon_cannot_be_told_is_said_before_the_start(tmp_path: Path) -> None:
    """It wrote the alerts into a file that was called "false"."""
    script = SPIDER.rstrip() + "\n    custom_settings['CLUSTERD_ALERT_FILE'] = False\n    start_urls = []\n"
    done = scrapy(tmp_path, "runspider", "mine.py", "--loglevel", "WARNING", script=script)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith(
        "Scrapy settings: CLUSTERD_ALERT_FILE = False is not accepted; it takes text or a number"
    )
    assert len(done.stderr.splitlines()) == 1
    assert not (tmp_path / "false").exists()


def test_what_an_add_on_after_ours_sets_counts(tmp_path: Path) -> None:
    """As one that knows where the project's Redis is: a crawl that brings no daemon was refused for the daemon's."""
    (tmp_path / "theirs.py").write_text(
        "class Addon:\n    def update_settings(self, settings):\n"
        "        settings.set('CLUSTERD_REDIS', 'redis://127.0.0.1:1/0', 'addon')\n"
    )
    script = SPIDER.replace("500}", '500, "theirs.Addon": 600}').rstrip() + "\n    start_urls = []\n"
    wrong = "CLUSTERD_RULE_IDENTITY=alike"  # as this is, so is a store that is not installed
    done = scrapy(tmp_path, "runspider", "mine.py", "-s", wrong, "--loglevel", "WARNING", script=script)
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / ".clusterd" / "daemon.log").exists()


def test_where_twisted_logs_it_the_log_has_one_line_too(tmp_path: Path) -> None:
    """Twisted writes it on standard error besides, as nothing else can keep it from."""
    log = tmp_path / "log"
    words = ["runspider", "mine.py", "-s", "FORCE_CRAWLER_PROCESS=1", "--loglevel", "WARNING", "--logfile", str(log)]
    assert scrapy(tmp_path, *words, CLUSTERD_SKIP="maybe").returncode == 1
    assert log.read_text().splitlines()[-1].endswith(f"environment: {WRONG}")
    assert "Traceback" not in log.read_text()


def test_the_shell_says_it_as_what_is_wrong_with_its_arguments(tmp_path: Path) -> None:
    words = ["shell", "-s", 'ADDONS={"clusterd_crawler.Addon": 500}', "-s", "CLUSTERD_SKIP=maybe", "--nolog", "-c", "1"]
    done = scrapy(tmp_path, *words)
    assert done.returncode == 2
    assert done.stderr.endswith(f"error: Scrapy settings: {WRONG}\n")
    assert "Traceback" not in done.stderr
