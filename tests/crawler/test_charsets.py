"""The charsets of pages: labels of the Encoding Standard that Python does not know, and declarations that cannot be."""

from __future__ import annotations

import time

import pytest
from clusterd_crawler.html.charsets import said_by_markup, said_further_on
from clusterd_crawler.html.recoding import recoded
from clusterd_crawler.text import decode

from tests.crawler.pages import sketched

HEBREW, KOREAN, JAPANESE, RUSSIAN = "שלום עולם", "안녕하세요 세계 똠", "日本語の文書です", "Привет мир"
CHINESE, THAI, CZECH = "中文测试", "ภาษาไทย", "Žluťoučký kůň"


@pytest.mark.parametrize(
    ("content", "label", "codec"),
    [
        (HEBREW, "iso-8859-8-i", "iso8859-8"),
        (HEBREW, "Logical", "iso8859-8"),
        (HEBREW, "x-cp1255", "cp1255"),
        (KOREAN, "windows-949", "cp949"),
        (KOREAN, "KSC_5601", "cp949"),
        (JAPANESE, "x-euc-jp", "euc_jp"),
        (JAPANESE, "x-sjis", "shift_jis"),
        (RUSSIAN, "koi8", "koi8-r"),
        (RUSSIAN, "x-mac-cyrillic", "mac-cyrillic"),
        (CHINESE, "x-gbk", "gbk"),
        (THAI, "dos-874", "cp874"),
        (CZECH, "x-cp1250", "cp1250"),
    ],
)
def test_every_label_of_a_charset_leads_to_one_text(content: str, label: str, codec: str) -> None:
    html = f"<title>x</title><p>{content}</p>"
    expected = sketched(html).main
    for content_type in (
        f"text/html; charset={label}",
        f'text/html;Charset="{label}"',
        f"text/html; charset = {codec}",
    ):
        assert sketched(html.encode(codec), content_type).main == expected
    for declared in (f"<meta charset={label}>", f'<meta http-equiv=Content-Type content="text/html; charset={label}">'):
        assert sketched(f"{declared}{html}".encode(codec), "text/html").main == expected


def test_a_header_counts_before_markup() -> None:
    page = f"<meta charset=windows-1252><p>{KOREAN}".encode("cp949")
    assert KOREAN in decode(page, "text/html; charset=windows-949")


@pytest.mark.parametrize(
    "before",
    [
        "<style>" + "p{} " * 2000 + "</style>",
        "<!-- <meta charset=windows-1251> " + "a licence " * 1000 + "-->",
        "<script>" + "s = 'a script'; " * 400 + "s = '<meta charset=windows-1251><body>'</script>",
        "<meta name=description content='" + "of charset " * 500 + "'>",
        "<meta charset=none>",
    ],
)
def test_a_charset_that_is_named_late_counts_as_in_browsers(before: str) -> None:
    said = f"<head>{before}<meta charset=koi8-r><title>x</title></head><p>{RUSSIAN}"
    assert decode(said.encode("koi8-r"), "text/html") == said
    assert decode(said.encode(), "text/html") == said
    late = f"<head>{before}</head><body><p>są obdarzeni<meta charset=iso-8859-2>"
    assert "są" not in decode(late.encode("iso-8859-2"), "text/html")


@pytest.mark.parametrize("content", [RUSSIAN, CHINESE, "naïve", "an emoji 😀"])
@pytest.mark.parametrize("content_type", ["text/html", "text/plain"])
def test_utf_8_that_is_cut_within_a_character_is_utf_8(content: str, content_type: str) -> None:
    cut = f"<p>{content} {content}é".encode()
    while cut[-1] >= 0x80:
        cut = cut[:-1]
        assert content in decode(cut, content_type)
        assert sketched(cut, content_type).main == sketched(cut.decode("utf-8", "ignore"), content_type).main


def test_a_few_wrong_bytes_in_utf_8_leave_it_what_it_is() -> None:
    assert decode(f"<p>{RUSSIAN} \xa9 {RUSSIAN}".encode().replace(b"\xc2", b""), None) == f"<p>{RUSSIAN} \xa9 {RUSSIAN}"
    for content in ("caf\xe9", "„Spaß“", "Ã©t\xe9 "):
        assert decode(content.encode("cp1252"), None) == content
    for codec in ("koi8-r", "cp1251", "iso8859-5"):
        assert RUSSIAN not in decode(RUSSIAN.encode(codec), None)  # too little to guess by


@pytest.mark.parametrize("content_type", ["text/html; charset=utf-8", "text/html; charset=euc-kr"])
@pytest.mark.parametrize("codec", ["koi8-r", "cp1251", "iso8859-5", "cp866"])
def test_pages_of_another_charset_than_their_server_says_keep_their_words(codec: str, content_type: str) -> None:
    """Replaced, they had no letter left: 300 pages of a shop were one, and a rule kept the next ones out."""
    texts = [f"<p>{RUSSIAN} {word}" for word in RUSSIAN.split()]
    for said in ("", "<meta charset=utf-8>"):
        shown = {sketched(f"{said}{one}".encode(codec), content_type).main for one in texts}
        assert len(shown) == len(set(texts))
    for one in texts:
        right = f"<meta charset={codec}>{one}"
        assert decode(right.encode(codec), "text/html; charset=utf-8") == right
        assert decode(b"\xef\xbb\xbf" + right.encode(codec), None) == right
    within = [f"<p>{RUSSIAN * 9} ".encode() + one.encode(codec) + b" end" for one in texts]
    shown = {sketched(one, "text/html; charset=utf-8").main for one in within}
    assert len(shown) == len(set(texts))
    assert all(RUSSIAN in decode(one, "text/html; charset=utf-8") for one in within)


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be", "utf-32-le", "iso2022_jp"])
@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_page_cut_within_a_character_stays_in_the_charset_it_says(codec: str, cut: int) -> None:
    """All bytes of its letters are ASCII's, too: none of them is beyond ASCII, or the bytes are valid UTF-8."""
    content = JAPANESE if codec == "iso2022_jp" else "a page of English words"
    assert content in decode(
        f"<p>{content} {content}\N{HIRAGANA LETTER A}".encode(codec)[:-cut], f"text/html; charset={codec}"
    )


def test_what_is_wrong_far_behind_the_beginning_is_seen_there() -> None:
    page = b"word " * 250_000 + f"{RUSSIAN * 9} \xa9".encode().replace(b"\xc2", b"")
    assert decode(page, "text/html; charset=utf-8").endswith(f"{RUSSIAN} \xa9")
    started = time.process_time()
    decode(RUSSIAN.encode() * 70_000 + b"\xff" * 4_000_000, "text/html; charset=utf-8")
    assert time.process_time() - started < 1  # measured: .13 s; 4.5 s where only the beginning was judged


@pytest.mark.parametrize("beginning", [b"<meta ", b"<meta charset ", b"<!--", b"<script", b"<meta charset=x>"])
def test_hostile_markup_without_a_charset_costs_little(beginning: bytes) -> None:
    page = beginning * 20_000
    started = time.process_time()
    assert said_further_on(page) is None
    assert time.process_time() - started < 0.1  # measured: 3 ms at most


@pytest.mark.parametrize("charset", ["utf-16", "UTF-16BE", "utf-16le", "utf-32", "unicode"])
@pytest.mark.parametrize("end", ["", "."])
def test_readable_markup_that_says_utf_16_is_utf_8(charset: str, end: str) -> None:
    page = f'<html><meta charset="{charset}"><p>naïve words{end}</p>'
    assert decode(page.encode(), "text/html") == page


@pytest.mark.parametrize(
    "codec", ["undefined", "idna", "punycode", "unicode_escape", "raw-unicode-escape", "hex", "rot13"]
)
def test_a_codec_that_is_no_charset_names_none(codec: str) -> None:
    page = f"<p>{RUSSIAN} \\u0041</p>"
    assert decode(page.encode(), f"text/html; charset={codec}") == page
    assert decode(f"<meta charset={codec}>{page}".encode(), "text/html") == f"<meta charset={codec}>{page}"
    said = f"<meta charset=koi8-r>{page}"
    assert decode(said.encode("koi8-r"), f"text/html; charset={codec}") == said


@pytest.mark.parametrize("beginning", [b"<meta ", b"<meta charset ", b"<meta " + b"charset " * 600, b"<?xml encoding"])
def test_a_hostile_beginning_costs_little(beginning: bytes) -> None:
    beginning = (beginning * 4096)[:4096]
    started = time.process_time()
    for _ in range(10):
        said_by_markup(beginning)
    assert time.process_time() - started < 0.2  # measured: 10 ms each at most, most of it w3lib's; quadratic took 16


#: Characters that NEC and IBM added, in EUC-JP.
VENDORS = {
    "①": b"\xad\xa1",
    "Ⅳ": b"\xad\xb8",
    "㍉": b"\xad\xc0",
    "㈱": b"\xad\xea",
    "纊": b"\xf9\xa1",
    "髙": b"\xfc\xe2",
}


def in_japanese(content: str, codec: str) -> bytes:
    """Return a text of two bytes a character."""
    made = b"".join(VENDORS.get(one) or one.encode("euc_jp") for one in content)
    return made if codec == "euc-jp" else b"\x1b$B" + bytes(byte & 0x7F for byte in made) + b"\x1b(B"


@pytest.mark.parametrize("codec", ["euc-jp", "iso-2022-jp"])
@pytest.mark.parametrize("content", [*VENDORS, "①日", f"{JAPANESE}㈱{JAPANESE}", "日".join(VENDORS) * 20_000])
def test_characters_that_vendors_added_to_japanese_are_read_as_in_browsers(codec: str, content: str) -> None:
    """Python's codecs lack them, and of ``①日`` the second was lost as well."""
    body = in_japanese(content, codec)
    assert decode(body, f"text/html; charset={codec}") == content
    assert decode(f"<meta charset={codec}>".encode() + body, None).endswith(f">{content}")
    broken = in_japanese(JAPANESE * 2, codec) + b" \xff " + in_japanese(content[:2] + JAPANESE, codec)
    assert decode(broken, f"text/html; charset={codec}") == f"{JAPANESE * 2} ÿ {content[:2]}{JAPANESE}"


@pytest.mark.parametrize("wrong", [b"\xa9\xa1", b"\xff", b"\xad", b"\xad\x31", b"\xfd\xa1", b"\x80\xad\xa1"])
@pytest.mark.parametrize("codec", ["euc-jp", "iso-2022-jp"])
def test_what_is_wrong_in_japanese_stays_wrong(codec: str, wrong: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        recoded(wrong, codec)


@pytest.mark.parametrize("told", ["text/html", None])
def test_in_html_a_meta_counts_before_an_xml_declaration(told: str | None) -> None:
    said = f'<?xml version="1.0" encoding="windows-1252"?><meta charset=koi8-r><p>{RUSSIAN}'
    assert decode(said.encode("koi8-r"), told) == said
    unsaid = f'<?xml version="1.0" encoding="koi8-r"?><meta charset=none><p>{RUSSIAN}'
    assert decode(unsaid.encode("koi8-r"), told) == unsaid


@pytest.mark.parametrize("told", ["application/xhtml+xml", "text/xml", "application/atom+xml; x=y"])
def test_xml_is_in_the_charset_of_its_declaration_whatever_a_meta_says(told: str) -> None:
    for codec, declaration in (("utf-8", ""), ("cp1251", '<?xml version="1.0" encoding="windows-1251"?>')):
        page = f'{declaration}<html><meta charset="koi8-r"/><p>{RUSSIAN}</p></html>'
        assert decode(page.encode(codec), told) == page
    page = f'<html><meta charset="koi8-r"/><p>{RUSSIAN}</p></html>'
    assert decode(page.encode("koi8-r"), told) == page  # it is no UTF-8: better what it says than nothing


@pytest.mark.parametrize("told", ["text/html; charset=iso-2022-jp", "text/html; charset=csISO2022JP", None])
def test_narrow_kana_is_read_in_iso_2022_jp(told: str | None) -> None:
    """Browsers read it, Python's codec of that name does not."""
    assert decode(f"<p>{JAPANESE} ｶﾀｶﾅ {JAPANESE}".encode("iso2022_jp_ext"), told) == f"<p>{JAPANESE} ｶﾀｶﾅ {JAPANESE}"


@pytest.mark.parametrize(
    ("codec", "wrong"),
    [
        ("big5", b"\x87\xa3"),
        ("euc-jp", b"\xf5\xa1"),
        ("euc-jp", b"\x8f\xa1\xa1"),
        ("euc-jp", b"\xa0"),
        ("euc-jp", b"\x93"),
        ("shift_jis", b"\x85\xa1"),
        ("euc-kr", b"\xc9\xa1"),
        ("gbk", b"\xfe\xff"),
    ],
)
def test_what_is_wrong_ends_where_it_does_in_browsers(codec: str, wrong: bytes) -> None:
    """The second half of a pair that is no character was read with what followed, up to the next byte of ASCII."""
    content = {"euc-kr": KOREAN.split()[0], "gbk": CHINESE}.get(codec, "日本文")
    body = (content * 9).encode(codec)
    read = decode(body + wrong + body + b"<p>", f"text/html; charset={codec}")
    assert read.startswith(content * 9)
    assert read.endswith(content * 9 + "<p>")
    assert decode(body + wrong[:1] + b"<p>", f"text/html; charset={codec}").endswith("<p>")


@pytest.mark.parametrize("around", ["日本", "日本" * 100_000])
def test_the_euro_is_read_in_big5(around: str) -> None:
    """Python's codec lacks it, and of ``€一百`` the rest was lost as well."""
    body = around.encode("big5") + b"\xa3\xe1" + around.encode("big5")
    assert decode(body, "text/html; charset=big5") == f"{around}€{around}"
