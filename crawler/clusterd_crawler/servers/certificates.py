"""What is said of a server whose certificate is not accepted, and what would be right."""

from __future__ import annotations

import re
from typing import Final

#: What OpenSSL says where no authority that is known vouches for a certificate (X509_V_ERR_… 2, 18 to 21).
_UNKNOWN_SIGNER: Final = re.compile(r"issuer certificate|self.signed certificate|verify the first certificate")


def not_accepted(said: str, option: str) -> str:
    """Return what is wrong with a server's certificate; ``option`` is the one that names its authority."""
    hint = f" ({option}=FILE names who signed it)" if _UNKNOWN_SIGNER.search(said) else ""
    return f"shows a certificate that is not accepted: {said.rstrip('.')}{hint}"
