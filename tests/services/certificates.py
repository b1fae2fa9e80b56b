"""Certificates for tests: an authority, and keys that it signs, in PEM files as brokers and clients read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

#: What the key of an authority is for. Python 3.13 and later ask for it, and for the identifiers of the keys.
SIGNS = x509.KeyUsage(
    key_cert_sign=True,
    crl_sign=True,
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """Signs certificates; `ca` is its own."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name, self._key = folder, _named(name), ec.generate_private_key(ec.SECP256R1())
        made = _begun(self._name, self._name, self._key.public_key())
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        made = made.add_extension(SIGNS, critical=True)
        self._certificate = made.sign(self._key, hashes.SHA256())
        self.ca = folder / f"{name}.pem"
        self.ca.write_bytes(self._certificate.public_bytes(Encoding.PEM))

    def sign(self, name: str, *addresses: str) -> tuple[Path, Path]:
        """Return the files of a certificate for a host of this name, at these addresses, and of its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        made = _begun(_named(name), self._name, key.public_key())
        named = x509.DNSName(name), *(x509.IPAddress(ip_address(one)) for one in addresses)
        made = made.add_extension(x509.SubjectAlternativeName(named), critical=False)
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        made = made.add_extension(signer, critical=False)
        cert_file, key_file = self._folder / f"{name}-cert.pem", self._folder / f"{name}-key.pem"
        cert_file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM))
        key_file.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return cert_file, key_file


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _begun(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    made = x509.CertificateBuilder().subject_name(name).issuer_name(issuer).public_key(key)
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=2))
