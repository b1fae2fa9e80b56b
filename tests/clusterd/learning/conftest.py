"""What tests of the learners share."""

from __future__ import annotations

import pytest
import tldextract
import tldextract.tldextract


@pytest.fixture
def suffixes_from_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The discarder would fetch the list of public suffixes; the copy in its package serves."""
    offline = tldextract.TLDExtract(suffix_list_urls=(), cache_dir=None)
    monkeypatch.setattr(tldextract.tldextract, "TLD_EXTRACTOR", offline)
