"""What is said of a certificate: who signed it is asked for only where that is the matter."""

from __future__ import annotations

import pytest
from clusterd_crawler.servers.certificates import not_accepted


@pytest.mark.parametrize(
    "said", ["unable to get local issuer certificate", "self-signed certificate in certificate chain"]
)
def test_an_authority_that_is_not_known_is_to_be_named(said: str) -> None:
    assert not_accepted(said, "ca").endswith(f"{said} (ca=FILE names who signed it)")


@pytest.mark.parametrize(
    "said", ["certificate has expired", "Hostname mismatch, certificate is not valid for 'kafka.example.org'."]
)
def test_another_authority_would_not_help(said: str) -> None:
    assert not_accepted(said, "ca").endswith(f"not accepted: {said.rstrip('.')}")
