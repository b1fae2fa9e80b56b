"""An Apache tree: the manual with fancy index listings, two version aliases, and a second host as mirror."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.live_sites.process import free_port, running, wait_for

MANUAL = Path("/usr/share/doc/apache2-doc/manual")
MODULES = Path("/usr/lib/apache2/modules")

CONFIG = """
ServerRoot {folder}
PidFile {folder}/pid
ErrorLog {folder}/error.log
ServerName 127.0.0.1
Listen 127.0.0.1:{port}
Listen 127.0.0.1:{mirror}
{modules}
TypesConfig /etc/mime.types
AddDefaultCharset utf-8
DocumentRoot {folder}/htdocs
Alias /docs/2.4 {folder}/htdocs/manual
Alias /docs/current {folder}/htdocs/manual
<VirtualHost 127.0.0.1:{mirror}>
    DocumentRoot {folder}/htdocs
</VirtualHost>
<Directory {folder}/htdocs>
    Options Indexes FollowSymLinks
    IndexOptions FancyIndexing NameWidth=*
    DirectoryIndex index.html index.html.en
    Require all granted
</Directory>
"""

MODULES_USED = ("mpm_event", "authz_core", "dir", "autoindex", "mime", "alias")


@contextmanager
def apache_tree(folder: Path) -> Iterator[str]:
    """Serve the tree; yield the start page's URL."""
    port, mirror = free_port(), free_port()
    htdocs = folder / "htdocs"
    _lay_out(htdocs, f"http://127.0.0.1:{mirror}/")
    loads = "\n".join(f"LoadModule {name}_module {MODULES}/mod_{name}.so" for name in MODULES_USED)
    config = folder / "httpd.conf"
    config.write_text(CONFIG.format(folder=folder, port=port, mirror=mirror, modules=loads), encoding="utf-8")
    with running(["apache2", "-f", str(config), "-DFOREGROUND"], folder / "apache.log"):
        wait_for(f"http://127.0.0.1:{port}/")
        yield f"http://127.0.0.1:{port}/"


def _lay_out(htdocs: Path, mirror: str) -> None:
    """Put the English manual under the document root, with folders that have no index page of their own."""
    htdocs.mkdir(parents=True)
    manual = htdocs / "manual"
    subprocess.run(["cp", "-rL", "--preserve=timestamps", str(MANUAL / "en"), str(manual)], check=True)
    for page in manual.rglob("*.html.en"):
        page.rename(page.with_suffix(""))
    for section in ("howto", "mod", "misc"):
        # Without an index page, Apache lists the folder, sortable by four columns in two orders.
        (manual / section / "index.html").unlink(missing_ok=True)
    links = ("/manual/", "/docs/2.4/", "/docs/current/", "/manual/howto/", "/manual/mod/", "/manual/misc/", mirror)
    items = "".join(f'<li><a href="{link}">{link}</a></li>' for link in links)
    (htdocs / "index.html").write_text(f"<html><title>Start</title><body><ul>{items}</ul></body></html>", "utf-8")
