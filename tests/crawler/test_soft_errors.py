"""Titles of pages that say that there is no page, and titles that only sound so."""

from __future__ import annotations

import pytest
from clusterd_crawler.crawling.soft_errors import is_soft_error


@pytest.mark.parametrize(
    "title",
    [
        "404 Not Found",
        "Error 404",
        "404",
        "Page not found - Example",
        "The page could not be found",
        "503 Service Temporarily Unavailable",
        "This topic does not exist",
        "Access Denied",
        "Seite nicht gefunden",
        "Page introuvable",
        "Страница не найдена",
        "找不到页面",
        "ページが見つかりません",
    ],
)
def test_a_title_that_says_so(title: str) -> None:
    assert is_soft_error(f"<html><head><TITLE lang=x>\n {title} </TITLE></head>".encode())


@pytest.mark.parametrize(
    "title",
    ["Peugeot 404", "Lost and found", "Foundations of error theory", "HTTP status codes", "Room 503", "Manual", ""],
)
def test_a_title_that_does_not(title: str) -> None:
    assert not is_soft_error(f"<title>{title}</title><body>404 not found</body>".encode())


@pytest.mark.parametrize("body", [b"", b"<title>", b"<title" * 5000, b"<title>404 not found", bytes(range(256))])
def test_no_title_is_no_error(body: bytes) -> None:
    assert not is_soft_error(body)
