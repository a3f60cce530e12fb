"""Words of ATA's IDENTIFY DEVICE (ACS-3, 7.12.7), which libata shows in sysfs as `ata_device/*/id`, eight per line."""

from __future__ import annotations

import re
from dataclasses import dataclass

_WORDS = 256


@dataclass(frozen=True)
class Identity:
    """The drive's report on itself."""

    rotation_rpm: int | None
    """0: does not rotate."""
    ncq_supported: bool
    ncq_depth: int
    write_cache_enabled: bool | None
    """None: it has no cache that can be switched."""
    link_max_gbps: float | None
    apm_level: int | None
    """0: off; None: it has none."""
    error_recovery_supported: bool | None
    """None: the drive does not report it."""
    recording: str | None
    discards: bool
    serial: str | None
    firmware: str | None
    model: str | None


def identity(text: str) -> Identity | None:
    """Parse the words; None if they are not those of a drive."""
    words = text.split()
    if len(words) != _WORDS or not all(re.fullmatch(r"[0-9a-fA-F]{4}", word) for word in words):
        return None
    word = [int(found, 16) for found in words]
    if not any(word):
        return None
    return Identity(
        rotation_rpm=_rotation(word[217]),
        ncq_supported=bool(word[76] & 1 << 8) and word[76] != 0xFFFF,
        ncq_depth=(word[75] & 0x1F) + 1,
        write_cache_enabled=bool(word[85] & 1 << 5) if word[82] & 1 << 5 else None,
        link_max_gbps=_fastest(word[76]),
        apm_level=_apm(word[83], word[86], word[91]),
        error_recovery_supported=bool(word[206] & 1 << 3) if word[206] & 1 and word[206] != 0xFFFF else None,
        recording={1: "host-aware", 2: "device-managed"}.get(word[69] & 3) if word[69] != 0xFFFF else None,
        discards=bool(word[169] & 1) and word[169] != 0xFFFF,
        serial=_string(word[10:20]),
        firmware=_string(word[23:27]),
        model=_string(word[27:47]),
    )


def with_serial(text: str, serial: str) -> str:
    """The words with another serial number (10 to 19, two characters each) and no world-wide name (108 to 111)."""
    words = text.split()
    if len(words) != _WORDS:
        return ""
    padded = serial.ljust(20)[:20].encode("ascii", errors="replace")
    words[10:20] = [padded[at : at + 2].hex() for at in range(0, 20, 2)]
    words[108:112] = ["0000"] * 4
    return "".join(f"{' '.join(words[at : at + 8])}\n" for at in range(0, _WORDS, 8))


def _rotation(word: int) -> int | None:
    if word == 1:
        return 0
    return word if 0x0401 <= word <= 0xFFFE else None


def _apm(supported: int, enabled: int, level: int) -> int | None:
    if not supported & 1 << 3 or supported >> 14 != 1:  # bits 15:14 of a valid word are 01
        return None
    return level & 0xFF if enabled & 1 << 3 else 0


def _fastest(word: int) -> float | None:
    if word in (0, 0xFFFF):
        return None
    return next((speed for bit, speed in ((3, 6.0), (2, 3.0), (1, 1.5)) if word & 1 << bit), None)


def _string(words: list[int]) -> str | None:
    text = b"".join(word.to_bytes(2, "big") for word in words).decode("ascii", errors="replace").strip(" \0")
    return text if text and text.isprintable() and "\ufffd" not in text else None
