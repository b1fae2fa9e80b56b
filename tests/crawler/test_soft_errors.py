"""Titles of pages that say that they are not the page, and titles that only sound so."""

from __future__ import annotations

import pytest
from clusterd_crawler.crawling.pages.responses import is_good
from clusterd_crawler.page import sketch_page
from clusterd_crawler.soft_errors import is_soft_error
from scrapy.http import Response


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
    ("title", "charset"),
    [
        ("Страница не найдена", "windows-1251"),
        ("Страница не найдена", "koi8-r"),
        ("找不到页面", "gb18030"),
        ("ページが見つかりません", "shift_jis"),
        ("ページが見つかりません", "euc-jp"),
        ("ページが見つかりません", "iso-2022-jp"),
        ("찾을 수 없는 페이지", "euc-kr"),
        ("Página não encontrada", "iso-8859-1"),
        ("404 Not Found", "utf-16"),
        ("404 Not Found", "utf-16-le"),
    ],
)
def test_a_title_says_so_in_any_charset(title: str, charset: str) -> None:
    page = f"<html><head><TITLE>{title}</TITLE></head><body>what stands there all the same".encode(charset)
    content_type = f"text/html; charset={charset}"
    assert is_soft_error(page, content_type)
    assert sketch_page("http://h.example/", page, content_type, fetched_at=0).soft_error
    assert not is_good(Response("http://h.example/", headers={"Content-Type": content_type}, body=page))


@pytest.mark.parametrize("title", ["P&aacute;gina n&atilde;o encontrada", "&#1085;&#1077; &#1085;&#1072;йден&#1072;"])
def test_a_title_says_so_by_references(title: str) -> None:
    assert is_soft_error(f"<title>{title}</title>".encode())


def test_a_charset_that_only_the_page_names_counts() -> None:
    assert is_soft_error("<meta charset=windows-1251><title>Не найдено</title>".encode("cp1251"), "text/html")


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
