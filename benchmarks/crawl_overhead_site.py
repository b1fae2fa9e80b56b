"""The documentation site of `benchmarks.crawl_overhead`: real pages of Debian packages, served over loopback.

The packages are fetched once (``apt-get download``, no installation) and unpacked under ``.bench/documents``. A page
keeps its path, so that the links between pages hold. Where there is no apt, or too little comes, pages of the same size
and markup are made. Run as a program it serves them: python -m benchmarks.crawl_overhead_site PAGES PORT
"""

from __future__ import annotations

import random
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

#: Packages of Debian 12: 1,169, 530, 828 and 3,906 pages, by DocBook, Sphinx, XSLT and Doxygen.
PACKAGES = ("postgresql-doc-15", "python3.11-doc", "apache2-doc", "libstdc++-12-doc")
FETCHED = Path(".bench/documents")
#: Least and most bytes of a page.
SIZES = (1_000, 5_000_000)


def documents(count: int) -> dict[str, Path]:
    """Return paths on the site with the files that are served there; fewer pages are the first of more."""
    for package in PACKAGES:
        if not (FETCHED / package).is_dir():
            _fetch(package)
    files = [path for path in sorted(FETCHED.rglob("*.html")) if path.is_file() and not path.is_symlink()]
    real = [path for path in files if SIZES[0] <= path.stat().st_size <= SIZES[1] and "_made" not in path.parts]
    random.Random(1).shuffle(real)
    chosen = real[:count]
    chosen += [_made(number) for number in range(count - len(chosen))]
    return {f"/{path.relative_to(FETCHED)}".replace("+", "%2B"): path for path in chosen}


def _fetch(package: str) -> None:
    """Download and unpack a package; say so where that cannot be done."""
    folder = FETCHED / package
    FETCHED.mkdir(parents=True, exist_ok=True)
    try:
        subprocess.run(["apt-get", "download", "-qq", package], cwd=FETCHED, check=True, stderr=subprocess.DEVNULL)
        (archive,) = FETCHED.glob(f"{package}_*.deb")
        subprocess.run(["dpkg-deb", "-x", archive, folder], check=True)
        archive.unlink()
    except (OSError, subprocess.CalledProcessError, ValueError) as error:
        print(f"{package} is not to be had, pages are made instead: {error}", file=sys.stderr)


def _made(number: int) -> Path:
    """Return a page of 7.7 KB of text in 20 KB of HTML."""
    path = FETCHED / "_made" / f"{number}.html"
    if path.exists():
        return path
    chance = random.Random(number)
    words = ["".join(chance.choices("abcdefghijklmnoprstuw", k=chance.randint(2, 10))) for _ in range(500)]
    parts = [f"<html><head><title>Page {number}</title></head><body><nav><ul>"]
    parts += [f'<li><a href="{n}.html"><span class="menu">{words[n]}</span></a></li>' for n in range(60)]
    parts.append("</ul></nav><main>")
    for section in range(12):
        parts.append(f'<h2 id="s{section}">{" ".join(chance.choices(words, k=4))}</h2>')
        parts.append(f"<p>{' '.join(chance.choices(words, k=70))}</p>")
        parts.append(f'<pre class="code"><span>{" ".join(chance.choices(words, k=20))}</span></pre>')
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join([*parts, "</main></body></html>"]))
    return path


def serve(pages: dict[str, Path], port: int) -> None:
    """Serve the pages until the end of the process."""
    bodies = {path: file.read_bytes() for path, file in pages.items()}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = bodies.get(self.path, b"")
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    serve(documents(int(sys.argv[1])), int(sys.argv[2]))
