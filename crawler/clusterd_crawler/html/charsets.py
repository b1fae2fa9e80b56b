"""Which charset a page says it has: what its HTTP header says, else what its markup says.

w3lib knows the labels that Python's codecs know. The Encoding Standard (https://encoding.spec.whatwg.org/, "Names and
labels") has more, and pages carry them: Hebrew ones ``iso-8859-8-i``, Korean ones ``windows-949``, Japanese ones
``x-euc-jp``. Taken for windows-1252 their words would be others than those of the same page in UTF-8.
"""

from __future__ import annotations

import codecs
import re
from itertools import islice
from typing import Final

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, resolve_encoding

#: Charset as Python names it → the standard's labels for it that Python does not know.
_LABELS_OF: Final = {
    "utf-8": "unicode-1-1-utf-8 unicode11utf8 unicode20utf8 x-unicode20utf8",
    "iso8859-2": "iso88592",
    "iso8859-3": "iso88593",
    "iso8859-4": "iso88594",
    "iso8859-5": "iso88595",
    "iso8859-6": "csiso88596e csiso88596i iso-8859-6-e iso-8859-6-i iso88596",
    "iso8859-7": "iso88597 sun_eu_greek",
    "iso8859-8": "csiso88598e csiso88598i iso-8859-8-e iso-8859-8-i iso88598 logical visual",
    "iso8859-10": "iso885910",
    "iso8859-13": "iso885913",
    "iso8859-14": "iso885914",
    "iso8859-15": "csisolatin9 iso885915",
    "koi8-r": "koi koi8",
    "koi8-u": "koi8-ru",
    "mac-roman": "csmacintosh mac x-mac-roman",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian",
    "cp874": "dos-874 iso885911",
    "cp1250": "x-cp1250",
    "cp1251": "x-cp1251",
    "cp1252": "iso88591 x-cp1252 x-user-defined",
    "cp1253": "x-cp1253",
    "cp1254": "iso88599 x-cp1254",
    "cp1255": "x-cp1255",
    "cp1256": "x-cp1256",
    "cp1257": "x-cp1257",
    "cp1258": "x-cp1258",
    "gb18030": "csgb2312 gb_2312 x-gbk",
    "big5hkscs": "cn-big5 x-x-big5",
    "euc_jp": "cseucpkdfmtjapanese x-euc-jp",
    "cp949": "cseuckr csksc56011987 iso-ir-149 ks_c_5601-1989 ksc_5601 windows-949",
    "utf-16-be": "unicodefffe",
    "utf-16-le": "csunicode iso-10646-ucs-2 ucs-2 unicode unicodefeff",
}
_CHARSETS: Final = {label: codecs.lookup(name).name for name, labels in _LABELS_OF.items() for label in labels.split()}

#: Codecs of Python's that are no charsets of pages, as `codecs.lookup` names them (not asked here: a Python may have
#: been built without bzip2). Servers name one by accident (JavaScript's ``charset=undefined``).
_NO_CHARSETS: Final = frozenset(
    (
        *("undefined", "idna", "punycode", "unicode-escape", "raw-unicode-escape"),
        *("base64", "bz2", "hex", "quopri", "rot-13", "uu", "zlib"),
    )
)

#: Browsers read narrow kana in ISO-2022-JP.
_WIDER: Final = {"iso2022_jp": "iso2022_jp_ext"}

_IN_HEADER: Final = re.compile(r"""(?:^|;)\s*charset\s*=\s*["']?([\w.:-]+)""", re.IGNORECASE)
_IN_MARKUP: Final = re.compile(
    rb"""<meta\b[^<>]*\bcharset\s*=\s*["']?\s*([\w.:-]+)|<\?xml\b[^<>]*\bencoding\s*=\s*["']([\w.:-]+)""", re.IGNORECASE
)

#: Bytes of a page in which its charset is looked for where its beginning names none.
_FAR: Final = 64 * 1024
#: Most tags and comments that are looked at there: 2 ms with the lock held.
_MOST: Final = 256
#: Its tags that may name one, and what is passed over: comments, and what is no markup.
_IN_HEAD: Final = re.compile(
    rb"""<!--.*?(?:-->|\Z)|<(script|style|title)\b.*?(?:</\1|\Z)|<(?P<body>body)\b|(?P<meta><meta\b[^<>]*>)""",
    re.IGNORECASE | re.DOTALL,
)


def said_by_header(content_type: str | None) -> str | None:
    """Return the charset that a Content-Type names, as Python names it; None where it names none that is known."""
    charset = _charset(http_content_type_encoding(content_type))
    if charset is None and content_type and (match := _IN_HEADER.search(content_type)):
        charset = _CHARSETS.get(match[1].lower()) or _charset(resolve_encoding(match[1]))  # blanks around "=", too
    return charset


def said_by_markup(beginning: bytes) -> str | None:
    """Return the charset that markup names, as Python names it; None where it names none that is known.

    Browsers ask a declaration of XML in HTML last. Markup in which ASCII bytes say UTF-16 is not UTF-16; the HTML
    standard takes it for UTF-8 ("prescan").
    """
    declaration = _declaration(beginning)
    return _said_first(beginning[len(declaration) :]) or (_said_first(declaration) if declaration else None)


def said_by_xml(beginning: bytes) -> str | None:
    """Return the charset that XML names, as Python names it; what a ``meta`` in it says is nothing to XML."""
    return _said_first(_declaration(beginning))


def _declaration(beginning: bytes) -> bytes:
    return beginning[: beginning.find(b">") + 1] if beginning.startswith(b"<?xml") else b""


def _said_first(beginning: bytes) -> str | None:
    charset = _charset(html_body_declared_encoding(beginning))
    if charset is None and (match := _IN_MARKUP.search(beginning)):
        charset = _CHARSETS.get((match[1] or match[2]).decode("latin-1").lower())
    return "utf-8" if charset is not None and charset.startswith(("utf-16", "utf-32")) else charset


def said_further_on(body: bytes) -> str | None:
    """Return the charset that a page names behind its beginning, as browsers take it, as Python names it; or None.

    A style sheet, a script or a licence may stand before it. Linear in the bytes that are looked at.
    """
    for match in islice(_IN_HEAD.finditer(body, 0, _FAR), _MOST):
        if match["body"]:
            return None
        if match["meta"] and (charset := said_by_markup(match["meta"])):
            return charset
    return None


def _charset(codec: str | None) -> str | None:
    """Return a codec of Python's where it is a charset, or one that reads more of it."""
    return None if codec is None or codec in _NO_CHARSETS else _WIDER.get(codec, codec)
