"""Decompression by the system's libzstd, which Python has no module for before version 3.14."""

from __future__ import annotations

import ctypes
import ctypes.util
import functools

from saccade.replay.failures import ReplayError

# ZSTD_getFrameContentSize's values for a frame that does not say its size, and for bytes that are no frame.
_NO_SIZE = (2**64 - 1, 2**64 - 2)


@functools.cache
def _library() -> ctypes.CDLL:
    for name in (ctypes.util.find_library("zstd"), "libzstd.so.1"):
        if name is None:
            continue
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        size = ctypes.c_size_t
        library.ZSTD_getFrameContentSize.restype = ctypes.c_uint64
        library.ZSTD_getFrameContentSize.argtypes = [ctypes.c_char_p, size]
        library.ZSTD_decompress.restype = size
        library.ZSTD_decompress.argtypes = [ctypes.c_void_p, size, ctypes.c_char_p, size]
        library.ZSTD_isError.argtypes = [size]
        return library
    raise ReplayError("libzstd is not installed, which reads captures; install it (Debian: libzstd1)")


def decompress(packed: bytes, most: int) -> bytes:
    """The content of one frame that says its size. Raises ValueError for anything else, or for more than `most` bytes."""
    library = _library()
    size = library.ZSTD_getFrameContentSize(packed, len(packed))
    if size in _NO_SIZE or size > most:
        raise ValueError("is not a frame of zstd" if size in _NO_SIZE else f"holds {size:,} bytes, more than {most:,}")
    into = ctypes.create_string_buffer(max(size, 1))
    got = library.ZSTD_decompress(into, size, packed, len(packed))
    if library.ZSTD_isError(got) or got != size:
        raise ValueError("is a damaged frame of zstd")
    return into.raw[:size]
