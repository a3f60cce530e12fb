"""JSON into typed objects, from any thread.

msgspec works out the fields of a type the first time it decodes one. Two threads that do so at once can crash the
interpreter (a null pointer in msgspec 0.22), so decoders are made one after another, and kept.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_lock = Lock()
_decoders: dict[Any, msgspec.json.Decoder[Any]] = {}


def decode_json(text: str | bytes, kind: type[T]) -> T:
    """Decode JSON as a type. Raises msgspec's DecodeError or ValidationError."""
    with _lock:
        decoder = _decoders.get(kind)
        if decoder is None:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    found: T = decoder.decode(text)
    return found
