"""Titles of pages that say that they are not the page, and titles that only sound so."""

from __future__ import annotations

import pytest
from clusterd_crawler.soft_errors import is_soft_error


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
        "Just a moment...",
        "Attention Required! | Cloudflare",
        "Robot Check",
        "Are you a robot?",
        "Bloomberg - Are you a robot?",
        "Please verify that you are human",
        "Verifying you are not a bot",
        "Pardon Our Interruption",
        "Vercel Security Checkpoint",
        "Access to this page has been denied",
        "Sucuri WebSite Firewall - Access Blocked",
        "Too Many Requests",
        "Request Rejected",
        "reCAPTCHA",
    ],
)
def test_a_title_that_says_so(title: str) -> None:
    assert is_soft_error(f"<html><head><TITLE lang=x>\n {title} </TITLE></head>".encode())


@pytest.mark.parametrize(
    "title",
    [
        "Peugeot 404",
        "Lost and found",
        "Foundations of error theory",
        "HTTP status codes",
        "Room 503",
        "Manual",
        "",
        "A moment of rest",
        "Human rights",
        "Robots in films",
        "Traffic in towns",
        "Home security",
        "Firewalls",
        "I, Robot",
    ],
)
def test_a_title_that_does_not(title: str) -> None:
    assert not is_soft_error(f"<title>{title}</title><body>404 not found</body>".encode())


@pytest.mark.parametrize("body", [b"", b"<title>", b"<title" * 5000, b"<title>404 not found", bytes(range(256))])
def test_no_title_is_no_error(body: bytes) -> None:
    assert not is_soft_error(body)
