"""URL ⇄ keys and values (Koppula et al. 2010, definition 1), and the canonical form of a URL.

Canonical form: only what RFC 3986 (section 6.2) calls equivalent, so that two URLs of one form are one request:
scheme and host in lower case, IDN as A-labels, the default port and the fragment dropped, dot segments removed,
``%41`` written ``A`` and ``%2f`` written ``%2F``, characters that may not stand in a URL percent-encoded. The case of
the path, ``+``, the order of parameters, empty components and ``?`` without a query are content on some servers and
stay as they are.

Cost: one regular expression for a URL that is canonical already (most are), linear in its length otherwise.

A `Url` is the same taken apart, as rules edit it: path components (a trailing slash is an empty last one), query pairs
in order (`query_pair` says what stands without ``=``: a name of the value None, or a value of the name `UNNAMED`), and
``;name=value`` parameters of path components, which are keys named ``;name`` so that a session id there can go without
what follows it. ``str`` puts it together again: for every canonical URL ``str(parse(url)) == url``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import IPv6Address
from typing import Final

import idna
import mmh3
from publicsuffixlist import PSLFILE, PublicSuffixList

from clusterd_crawler.errors import WrongInput

DEFAULT_PORTS: Final = {"http": "80", "https": "443", "ftp": "21", "ws": "80", "wss": "443"}
#: Longest host name (RFC 1035, section 2.3.4); what is longer is refused before it is looked at.
HOST_LIMIT: Final = 253

#: A URL without ``/.`` that is its own canonical form, told in one pass: no escape, nothing unusual, and a port, where
#: there is one, that is nobody's default.
_CANONICAL: Final = re.compile(
    r"https?://(?![a-z0-9\-_.]{254})[a-z0-9][a-z0-9\-_]*+(?:\.[a-z0-9\-_]++)*+\.?"
    r"(?::(?!80/|443/)(?:[1-9][0-9]{0,3}|[1-5][0-9]{4}))?"
    r"/[A-Za-z0-9\-._~!$&'()*+,;=:@/]*+(?:\?[A-Za-z0-9\-._~!$&'()*+,;=:@/?]*+)?"
)
#: Scheme, authority, path and query of an absolute URL; what follows ``#`` is left.
_SPLIT: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.\-]*)://([^/?#\\]*)([^?#]*)(\?[^#]*)?")
_STRIP: Final = "".join(map(chr, range(0x21)))
_DROPPED: Final = re.compile(r"[\t\n\r]")
_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_MALFORMED: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9\-._~!$&'()*+,;=:@/?%\[\]|]+")
_DOTS: Final = re.compile(r"/\.{1,2}(?:/|\Z)")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
#: Name of what stands in a query without ``=`` and is no word (no real name has a ``=``): ``?12-any-title`` is a value,
#: and as a name it would be another one on each page.
UNNAMED: Final = "="
_WORD: Final = re.compile(r"[a-z_]*")
#: What ends the authority of a URL; a URL that is not canonical may have no path (``http://h?a=1``).
_AFTER_HOST: Final = re.compile(r"[/?#\\]")
_LABELS: Final = re.compile(r"[a-z0-9\-_.~!$&'()*+,;=]+|\[[0-9a-f:.]+\]")


def canonical(url: str) -> str:
    """Return the canonical form of an absolute URL.

    >>> canonical("HTTP://Example.COM:80/a/../%7euser?b=+&a=%2b#top")
    'http://example.com/~user?b=+&a=%2B'
    """
    if "/." not in url and _CANONICAL.fullmatch(url):
        return url
    cleaned = _DROPPED.sub("", url.strip(_STRIP))
    match = _SPLIT.match(cleaned)
    if match is None:
        raise WrongInput(f"not an absolute URL: {_shown(url)}; expected scheme://host/path")
    scheme = match[1].lower()
    authority = _authority(match[2], scheme, url)
    path = _escaped(match[3])
    if not path.startswith("/"):
        path = "/" + path
    while (shorter := _without_dots(path)) is not path:
        path = _escaped(shorter)  # with a folder the malformed escape may have gone that kept others as they were
    return f"{scheme}://{authority}{path}{_escaped(match[4] or '')}"


def canonical_if_any(url: str) -> str:
    """Return the canonical form of a URL, "" of what is none."""
    try:
        return canonical(url)
    except WrongInput:
        return ""


def _shown(url: str) -> str:
    return repr(url if len(url) <= 200 else url[:200] + "…")


def _authority(text: str, scheme: str, url: str) -> str:
    user, at, rest = text.rpartition("@")
    host, port = _host_and_port(rest, url)
    if not host and scheme != "file":
        raise WrongInput(f"no host in URL: {_shown(url)}")
    if port and port != DEFAULT_PORTS.get(scheme):
        host = f"{host}:{port}"
    return f"{_escaped(user)}{at}{host}"


def _host_and_port(text: str, url: str) -> tuple[str, str]:
    host, colon, port = text.rpartition(":")
    if not colon or (text.endswith("]") and text.startswith("[")):
        return _host(text, url), ""
    if port and not (port.isascii() and port.isdigit() and int(port[:6]) <= 65535 and len(port) <= 5):
        raise WrongInput(f"port is not a number from 0 to 65535 in URL: {_shown(url)}")
    return _host(host, url), port and str(int(port))


def _host(text: str, url: str) -> str:
    host = text.lower()
    if len(host) <= HOST_LIMIT:
        if not host:
            return ""
        try:
            if host[0] == "[":
                IPv6Address(host[1:-1])
            if _LABELS.fullmatch(host):
                return host
            return idna.encode(host, uts46=True, transitional=False).decode("ascii")
        except (ValueError, IndexError):  # no address, no text, no name (`idna.IDNAError`)
            pass
    raise WrongInput(f"not a host name: {_shown(text)} in URL: {_shown(url)}")


def _escaped(text: str) -> str:
    """Percent-encode what must be, decode what need not be; where an escape is malformed nothing is decoded."""
    if _UNSAFE.search(text):
        text = encode_unsafe(text)
    if "%" not in text:
        return text
    return capital_escapes(text) if _MALFORMED.search(text) else _ESCAPE.sub(_decode, text)


def capital_escapes(text: str) -> str:
    """Return a part of a URL with its escapes in the capitals that they have in canonical ones.

    >>> capital_escapes("caf%c3%a9%")
    'caf%C3%A9%'
    """
    return _ESCAPE.sub(lambda match: match[0].upper(), text)


def encode_unsafe(text: str) -> str:
    """Return a part of a URL with what stands in none but escaped, ``#`` too, as its escapes in UTF-8.

    >>> encode_unsafe("a b/caf\u00e9%|")
    'a%20b/caf%C3%A9%|'
    """
    return _UNSAFE.sub(lambda match: _encode(match[0]), text)


def _encode(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _decode(match: re.Match[str]) -> str:
    character = chr(int(match[1], 16))
    return character if character in _UNRESERVED else match[0].upper()


def _without_dots(path: str) -> str:
    """Remove dot segments (RFC 3986, section 5.2.4)."""
    if _DOTS.search(path) is None:
        return path
    kept: list[str] = []
    parts = path.split("/")[1:]
    for position, part in enumerate(parts):
        if part not in {".", ".."}:
            kept.append(part)
            continue
        if part == ".." and kept:
            kept.pop()
        if position == len(parts) - 1:
            kept.append("")
    return "/" + "/".join(kept)


class Url:
    """A canonical URL taken apart. Rules edit its lists in place; ``str`` gives the URL or the key that results."""

    __slots__ = ("authority", "matrix", "path", "query", "scheme", "separator")

    def __init__(self, scheme: str, authority: str, path: list[str], query: list[tuple[str, str | None]]) -> None:
        self.scheme = scheme
        #: Host, with a port that is not the scheme's, and with user information where there is some.
        self.authority = authority
        self.path = path
        self.query = query
        #: What separates query pairs: ``&``, or ``;`` where every piece between semicolons has a ``=``.
        self.separator = "&"
        #: (component index, name with its ``;``, value) of parameters inside path components.
        self.matrix: list[tuple[int, str, str | None]] | None = None

    def __str__(self) -> str:
        path = "/".join(self.path) if self.matrix is None else self._path_with_matrix()
        if not self.query:
            return f"{self.scheme}://{self.authority}/{path}"
        pieces = [
            name if value is None else value if name == UNNAMED else f"{name}={value}" for name, value in self.query
        ]
        if len(pieces) == 1 and self.separator == "&" and _is_list(pieces[0]):
            pieces[0] = pieces[0].replace(";", "%3B")  # what is left of ``a=1&b=x;c=2`` when ``a`` goes is no list
        return f"{self.scheme}://{self.authority}/{path}?{self.separator.join(pieces)}"

    def _path_with_matrix(self) -> str:
        parts = list(self.path)
        for index, name, value in self.matrix or ():
            if index < len(parts):
                parts[index] += name if value is None else f"{name}={value}"
        return "/".join(parts)


def parse(url: str) -> Url:
    """Take a canonical URL apart."""
    scheme, _, rest = url.partition("://")
    head, mark, query = rest.partition("?")
    authority, _, path = head.partition("/")
    parts = path.split("/")
    separator = "&"
    pairs: list[tuple[str, str | None]] = []
    if mark:
        if "&" not in query and _is_list(query):
            separator = ";"
        pairs += map(query_pair, query.split(separator))
    taken = Url(scheme, authority, parts, pairs)
    taken.separator = separator
    if ";" in path:
        _take_matrix(taken)
    return taken


def _is_list(query: str) -> bool:
    """Whether a query without ``&`` is a list of pairs with ``;`` between them."""
    return ";" in query and all("=" in piece for piece in query.split(";"))


def query_pair(piece: str) -> tuple[str, str | None]:
    """Return the name and the value of a piece of a query: a word alone is a name, anything else alone is a value.

    So is what begins with a ``;`` (``?a=1&;b=2``): names that do are those of parameters in the path.

    >>> query_pair("p=1"), query_pair("print"), query_pair("12-any-title"), query_pair(";b=2")
    (('p', '1'), ('print', None), ('=', '12-any-title'), ('=', ';b=2'))
    """
    name, equals, value = piece.partition("=")
    if equals and not name.startswith(";"):
        return name, value
    return (piece, None) if _WORD.fullmatch(piece) else (UNNAMED, piece)


def differ_by_parameters(one: Url, other: Url) -> bool:
    """Whether two URLs differ in nothing but parameters that only one of them has: in no value of one that both have.

    >>> a, b, c = map(parse, ("http://h/t?id=7&print=1", "http://h/t?id=7&sid=x", "http://h/t?id=8"))
    >>> differ_by_parameters(a, b), differ_by_parameters(a, c)
    (True, False)
    """
    shared = dict(one.query).keys() & dict(other.query)
    values = [sorted((name, value or "") for name, value in url.query if name in shared) for url in (one, other)]
    places = [(url.scheme, url.authority, url.path) for url in (one, other)]
    return places[0] == places[1] and values[0] == values[1]


def in_query(name: str) -> bool:
    """Whether a key of this name is in the query: one inside the path is named ``;name``, a component has no name."""
    return bool(name) and not name.startswith(";")


def _take_matrix(url: Url) -> None:
    matrix: list[tuple[int, str, str | None]] = []
    for index, part in enumerate(url.path):
        plain, *parameters = part.split(";")
        url.path[index] = plain
        for parameter in parameters:
            name, equals, value = parameter.partition("=")
            matrix.append((index, ";" + name, value if equals else None))
    url.matrix = matrix


@lru_cache(maxsize=1)
def _suffix_lines() -> dict[str, list[str]]:
    """Return the lines of the list of public suffixes by their last label: reading all of them as rules takes 40 ms."""
    lines: dict[str, list[str]] = {}
    with open(PSLFILE, encoding="utf-8") as file:
        for line in file:
            rule = line.partition(" ")[0].strip().lower()
            if rule and not rule.startswith("//"):
                lines.setdefault(rule.rpartition(".")[2].lstrip("!"), []).append(line)
    return lines


@lru_cache(maxsize=4096)
def _suffixes(top: str) -> PublicSuffixList:
    """Return the rules that end in a label, which are all that say anything of a host that ends in it."""
    if top.isascii() and not top.startswith("xn--"):
        return PublicSuffixList(_suffix_lines().get(top, ()))
    return _all_suffixes()  # the list spells such labels in two ways


@lru_cache(maxsize=1)
def _all_suffixes() -> PublicSuffixList:
    return PublicSuffixList()


def without_port(host: str) -> str:
    """Return a host's name or address, without port and user.

    >>> without_port("me@h.com:8080"), without_port("[::1]:80")
    ('h.com', '[::1]')
    """
    name = host.rpartition("@")[2]
    return name.partition("]")[0] + "]" if name.startswith("[") else name.partition(":")[0]


@lru_cache(maxsize=65536)
def registrable(host: str) -> str:
    """Return the registrable domain of a host (its port is ignored), or the host itself where it has none.

    >>> registrable("www.example.co.uk:8080"), registrable("127.0.0.1:80"), registrable("localhost")
    ('example.co.uk', '127.0.0.1', 'localhost')
    """
    name = without_port(host)
    if name.startswith("["):
        return name
    if name.replace(".", "").isdigit():
        return name
    return _suffixes(name.removesuffix(".").rpartition(".")[2].lower()).privatesuffix(name) or name


def is_text(given: str) -> bool:
    r"""Whether a string is text that UTF-8 can write: no half of a surrogate pair, as a file name in Latin-1 leaves.

    >>> is_text("caf\u00e9"), is_text("caf\udce9")
    (True, False)
    """
    return given.isascii() or not any("\ud800" <= character <= "\udfff" for character in given)


def hash_of(text: str) -> int:
    """Return 64 bits of a text (MurmurHash3): the same in every process."""
    return int(mmh3.hash64(text.encode("utf-8", "surrogatepass"), signed=False)[0])


def canonical_hosts(name: str) -> list[str]:
    """Return a host as canonical URLs have it, by http and by https: the port of the one is said of the other.

    >>> canonical_hosts("H.com:443"), canonical_hosts("h com")
    (['h.com:443', 'h.com'], [])
    """
    try:
        return [host_of(canonical(f"{scheme}://{name}/")) for scheme in ("http", "https")]
    except WrongInput:
        return []


def host_of(url: str) -> str:
    """Return the host of a URL as it stands in it, with its port: of a canonical one, if that is not the scheme's.

    >>> host_of("http://h:81/a"), host_of("http://h?next=/a")
    ('h:81', 'h')
    """
    start = url.find("://") + 3
    end = url.find("/", start)
    host = url[start:] if end < 0 else url[start:end]
    after = _AFTER_HOST.search(host)
    return host if after is None else host[: after.start()]


def site_of(url: str) -> str:
    """Return scheme and host of a canonical URL.

    >>> site_of("http://www.example.com:81/a?b=c")
    'http://www.example.com:81'
    """
    end = url.find("/", url.find("://") + 3)
    return url if end < 0 else url[:end]


def beyond_site(url: str) -> str:
    """Return path and query of a canonical URL: what mirrors have in common.

    >>> beyond_site("http://www.example.com:81/a?b=c")
    '/a?b=c'
    """
    return url[len(site_of(url)) :]
