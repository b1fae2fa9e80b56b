"""XHTML and other XML in the words of HTML: what is served as XML is read as XML, up to what a reader of HTML misreads.

In XML ``<script src="x"/>`` ends where it stands, and so does ``<a id="x"/>``; in HTML either is left open, and a
script, a title or a text area swallows what follows. ``<![CDATA[…]]>`` is text in XML, and nothing in HTML. Both are
written as HTML has them. Comments and scripts are not told apart: what changes there is not shown.

Cost: linear, one pass each; only of pages that are served as XML.
"""

from __future__ import annotations

import re
from typing import Final

from clusterd_crawler.html.chrome import TAGS, VOID

#: A tag that ends itself. (No attribute of XML holds a ``<``.) What was taken for the name is never given back: where
#: the tag has no end, a search that tried each shorter name would take the square of its length.
_EMPTY: Final = re.compile(rb"<([A-Za-z][^\t\n\f\r /<>]*+)([^<>]*)/>")
_CDATA: Final = b"<![CDATA["
_CDATA_END: Final = b"]]>"


def as_html(data: bytes) -> bytes:
    """Return XML markup in UTF-8 as HTML.

    >>> as_html(b'<script src="x"/><br/>1<a id="y" />2<![CDATA[3 < 4]]>')
    b'<script src="x"></script><br/>1<a id="y" ></a>23 &lt; 4'
    """
    return _EMPTY.sub(_opened_and_closed, _without_cdata(data))


def _opened_and_closed(tag: re.Match[bytes]) -> bytes:
    name, attributes = tag.groups()
    if TAGS.get(name.lower(), 0) & VOID:
        return tag[0]
    return b"<%s%s></%s>" % (name, attributes, name)


def _without_cdata(data: bytes) -> bytes:
    parts: list[bytes] = []
    at = 0
    while (begins := data.find(_CDATA, at)) >= 0 and (ends := data.find(_CDATA_END, begins)) >= 0:
        said = data[begins + len(_CDATA) : ends]
        parts += (data[at:begins], said.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;"))
        at = ends + len(_CDATA_END)
    parts.append(data[at:])
    return b"".join(parts)
