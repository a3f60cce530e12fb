"""A mark in pictures by Spindle, so that only they are replaced by later ones."""

from __future__ import annotations

import zlib

MARK = b"made by spindle"
_PNG = b"\x89PNG\r\n\x1a\n"
NEAR = 1000
"""Bytes at the start that contain the mark."""
_HEADER_END = len(_PNG) + 4 + 4 + 13 + 4
"""Signature, then the first chunk: length, type, IHDR's 13 bytes, CRC (PNG specification, sections 5.2 and 11.2.1)."""


def marked(data: bytes) -> bytes:
    """Add the mark to a PNG or SVG: a text chunk after the header, or a comment after the first tag."""
    if not data.startswith(_PNG):
        start, end, rest = data.partition(b">")
        return start + end + b"<!-- " + MARK + b" -->" + rest
    body = b"tEXtSoftware\0" + MARK
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    return data[:_HEADER_END] + chunk + data[_HEADER_END:]


def is_marked(head: bytes) -> bool:
    """True if a file with these first bytes is such a picture."""
    return head.startswith((b"<svg ", _PNG)) and MARK in head[:NEAR]
