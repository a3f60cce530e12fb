"""Pictures say that Spindle made them, so that a later one may replace them and nothing else."""

from __future__ import annotations

import zlib

MARK = b"made by spindle"
_PNG = b"\x89PNG\r\n\x1a\n"
NEAR = 1000
"""Bytes from the start that have the mark in them."""
_HEADER_END = len(_PNG) + 4 + 4 + 13 + 4
"""Signature, then the first chunk: length, type, IHDR's 13 bytes, CRC (PNG specification, sections 5.2 and 11.2.1)."""


def marked(data: bytes) -> bytes:
    """A PNG or SVG with the mark: a text chunk behind the header, or a comment behind the first tag."""
    if not data.startswith(_PNG):
        start, end, rest = data.partition(b">")
        return start + end + b"<!-- " + MARK + b" -->" + rest
    body = b"tEXtSoftware\0" + MARK
    chunk = (len(body) - 4).to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big")
    return data[:_HEADER_END] + chunk + data[_HEADER_END:]


def is_marked(head: bytes) -> bool:
    """Whether the first bytes of a file are those of such a picture."""
    return head.startswith((b"<svg ", _PNG)) and MARK in head[:NEAR]
