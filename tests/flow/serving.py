"""A site on loopback whose pages a function writes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


@contextmanager
def serving(page: Callable[[str], bytes | str]) -> Iterator[str]:
    """Serve what a function makes of a path and query: HTML, a PDF, or where it redirects to; gives the address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            made = page(self.path)
            body = made if isinstance(made, bytes) else b""
            self.send_response(200 if isinstance(made, bytes) else 302)
            if isinstance(made, str):
                self.send_header("Location", made)
            self.send_header("Content-Type", "application/pdf" if body.startswith(b"%PDF") else "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
