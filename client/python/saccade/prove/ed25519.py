"""Ed25519 signatures by the system's libcrypto: Python has no module for them."""

from __future__ import annotations

import base64
import ctypes
import ctypes.util
import functools
import hashlib
import pathlib
import re
import secrets

from saccade.prove.failures import ProveError

# What precedes the 32 bytes of a public and of a private key in DER (RFC 8410).
_PUBLIC_DER = bytes.fromhex("302a300506032b6570032100")
_PRIVATE_DER = bytes.fromhex("302e020100300506032b657004220420")
_KEY_BYTES = 32
SIGNATURE_BYTES = 64
# EVP_PKEY_ED25519
_KIND = 1087
_MAX_FILE = 16384
_PUBLIC_PEM = re.compile(r"-----BEGIN PUBLIC KEY-----\s([A-Za-z0-9+/=\s]*)-----END PUBLIC KEY-----")


@functools.cache
def _library() -> ctypes.CDLL:
    pointer, text, size = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t
    for name in (ctypes.util.find_library("crypto"), "libcrypto.so.3", "libcrypto.so.1.1"):
        if name is None:
            continue
        try:
            library = ctypes.CDLL(name)
            for function, result, arguments in (
                (library.EVP_PKEY_new_raw_public_key, pointer, [ctypes.c_int, pointer, text, size]),
                (library.EVP_PKEY_free, None, [pointer]),
                (library.EVP_MD_CTX_new, pointer, []),
                (library.EVP_MD_CTX_free, None, [pointer]),
                (library.EVP_DigestVerifyInit, ctypes.c_int, [pointer, pointer, pointer, pointer, pointer]),
                (library.EVP_DigestVerify, ctypes.c_int, [pointer, text, size, text, size]),
                (library.ERR_clear_error, None, []),
            ):
                function.restype, function.argtypes = result, arguments
        except (OSError, AttributeError):
            continue
        return library
    raise ProveError("libcrypto of OpenSSL 1.1.1 or later is not installed, which verifies signatures; install it (Debian: libssl3)")


def verifies(public_key: bytes, signed: bytes, signature: bytes) -> bool:
    if len(public_key) != _KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    library = _library()
    key = library.EVP_PKEY_new_raw_public_key(_KIND, None, public_key, len(public_key))
    context = library.EVP_MD_CTX_new()
    try:
        return bool(
            key
            and context
            and library.EVP_DigestVerifyInit(context, None, None, None, key) == 1
            and library.EVP_DigestVerify(context, signature, len(signature), signed, len(signed)) == 1
        )
    finally:
        library.ERR_clear_error()
        library.EVP_MD_CTX_free(context)
        library.EVP_PKEY_free(key)


def fingerprint(public_key: bytes) -> str:
    """As `openssl pkey -pubin -outform DER | sha256sum` writes it."""
    return hashlib.sha256(_PUBLIC_DER + public_key).hexdigest()


def read_public_key(path: pathlib.Path) -> bytes:
    """The 32 bytes of a public key in a PEM file."""
    expected = "expected an Ed25519 public key in PEM, as openssl pkey -pubout writes it"
    try:
        with open(path, encoding="ascii") as file:
            text = file.read(_MAX_FILE)
    except (OSError, ValueError) as error:
        raise ProveError(f"--key {path} cannot be read: {error}; {expected}") from None
    found = _PUBLIC_PEM.search(text)
    try:
        der = base64.b64decode("".join(found[1].split()), validate=True) if found else b""
    except ValueError:
        der = b""
    if not der.startswith(_PUBLIC_DER) or len(der) != len(_PUBLIC_DER) + _KEY_BYTES:
        raise ProveError(f"--key {path} is no such key; {expected}")
    return der[len(_PUBLIC_DER) :]


def new_private_pem() -> str:
    """A new private key in PEM, for a daemon whose signatures nobody verifies."""
    text = base64.b64encode(_PRIVATE_DER + secrets.token_bytes(_KEY_BYTES)).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n"
