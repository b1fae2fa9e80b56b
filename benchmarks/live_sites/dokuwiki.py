"""DokuWiki over pages that we write: edit walls, revisions, index folds, export views, media managers."""

from __future__ import annotations

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.live_sites.process import free_port, running, wait_for

PROGRAM = Path("/usr/share/dokuwiki")
PAGES = 480
NAMESPACES = ("alpha", "beta", "gamma")

LOCAL = """<?php
$conf['title'] = 'A wiki';
$conf['savedir'] = '{data}';
$conf['useacl'] = 1;
$conf['superuser'] = '@admin';
$conf['disableactions'] = 'register';
"""


@contextmanager
def dokuwiki(folder: Path, pages: int = PAGES) -> Iterator[str]:
    """Serve the wiki; yield the start page's URL."""
    root = folder / "wiki"
    shutil.copytree(PROGRAM, root, symlinks=False, ignore_dangling_symlinks=True)
    _configure(folder, root, pages)
    port = free_port()
    command = ["php", "-S", f"127.0.0.1:{port}", "-t", str(root)]
    with running(command, folder / "php.log", os.environ | {"PHP_CLI_SERVER_WORKERS": "2"}):
        wait_for(f"http://127.0.0.1:{port}/doku.php")
        yield f"http://127.0.0.1:{port}/doku.php"


def _configure(folder: Path, root: Path, pages: int) -> None:
    data = folder / "data"
    for part in (
        "pages",
        "attic",
        "media",
        "media_attic",
        "meta",
        "media_meta",
        "cache",
        "index",
        "locks",
        "tmp",
        "log",
    ):
        (data / part).mkdir(parents=True)
    conf = folder / "conf"
    shutil.copytree("/etc/dokuwiki", conf)
    (conf / "local.php").write_text(LOCAL.format(data=data), encoding="utf-8")
    (conf / "acl.auth.php").write_text("# <?php exit()?>\n*\t@ALL\t1\n", encoding="utf-8")
    (conf / "users.auth.php").write_text("# <?php exit()?>\n", encoding="utf-8")
    (root / "inc" / "preload.php").unlink(missing_ok=True)
    (root / "inc" / "preload.php").write_text(f"<?php define('DOKU_CONF', '{conf}/');\n", encoding="utf-8")
    _write_pages(data / "pages", pages)


def _write_pages(pages: Path, count: int) -> None:
    chance = random.Random(11)
    words = [f"term{n}" for n in range(400)]
    names = [f"{NAMESPACES[n % 3]}:p{n:03}" for n in range(count)]
    for name in names:
        path = pages / (name.replace(":", "/") + ".txt")
        path.parent.mkdir(exist_ok=True)
        linked = " ".join(f"[[{other}]]" for other in chance.sample(names, 3))
        text = "\n\n".join(" ".join(chance.choices(words, k=50)) for _ in range(3))
        path.write_text(f"====== {name} ======\n\n{text}\n\nSee {linked}\n", encoding="utf-8")
    listed = "\n".join(f"  * [[{name}]]" for name in names)
    (pages / "start.txt").write_text(f"====== Start ======\n\n{listed}\n", encoding="utf-8")
