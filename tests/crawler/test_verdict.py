from __future__ import annotations

import json

import pytest
from clusterd_crawler.errors import MessageError
from clusterd_crawler.verdict import Verdict, decode_verdict, encode_verdict


def test_a_verdict_comes_back_and_ignores_what_it_does_not_know() -> None:
    verdict = Verdict("http://a.test/é", 5, "c", "http://a.test/b", 0.95, "k1", "near", 2, nearly=True)
    raw = encode_verdict(verdict)
    assert decode_verdict(raw) == verdict
    assert decode_verdict(json.dumps({**json.loads(raw), "new": 1}).encode()) == verdict


@pytest.mark.parametrize("raw", [b"", b"[]", b"5", b"{", b"\xff", b'{"url": 3, "fetched_at": 1}', b'{"url": "u"}'])
def test_what_is_no_verdict_is_refused(raw: bytes) -> None:
    with pytest.raises(MessageError):
        decode_verdict(raw)
