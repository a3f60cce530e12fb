"""Health from the JSON of smartctl, of SATA, SAS and NVMe drives and of drives behind RAID controllers.

The attributes are those that indicate a failing drive or a bad cable; their numbers follow common ATA usage
(smartmontools' drive database gives them the same names for nearly all drives).
"""

from __future__ import annotations

from typing import Any

from .model import Smart
from .reading import dig, dig_flag, dig_int, dig_list, dig_text
from .tree import Tool, plain

_ATTRIBUTES = {5: "reallocated", 197: "pending", 198: "uncorrectable", 199: "crc_errors", 193: "load_cycles"}
_WEAR = ("Wear_Leveling_Count", "Media_Wearout_Indicator", "SSD_Life_Left", "Percent_Lifetime_Remain")
"""ATA attributes with a normalised value that falls from 100 (new) to 1 as the flash wears."""


def smart_tool(key: str, device: str, kind: str | None = None) -> Tool:
    """The command. A drive in standby is not woken."""
    words = ["smartctl", "--json", "--nocheck=standby", "-x", *(["--device", kind] if kind else []), device]
    return Tool("smartctl", key, tuple(words))


def smart_of(data: dict[str, Any], key: str) -> Smart:
    """Health that the drive reports."""
    smart = Smart()
    smart.healthy = dig_flag(data, "smart_status", "passed")
    smart.temperature_celsius = dig_int(data, "temperature", "current")
    smart.power_on_hours = dig_int(data, "power_on_time", "hours")
    _ata(smart, data)
    _scsi(smart, data)
    _nvme(smart, data)
    why = _complaint(data) or f"smartctl {key}: does not report it"
    for field in ("healthy", "temperature_celsius", "power_on_hours"):
        if getattr(smart, field) is None:
            smart.unknown[field] = why
    return smart


def _ata(smart: Smart, data: dict[str, Any]) -> None:
    for row in dig_list(data, "ata_smart_attributes", "table"):
        field = _ATTRIBUTES.get(dig_int(row, "id") or 0)
        count = dig_int(row, "raw", "value")
        if field is not None and count is not None:
            setattr(smart, field, count)
        left = dig_int(row, "value")
        if dig_text(row, "name") in _WEAR and left is not None and 0 < left <= 100:
            smart.used_percent = 100 - left
        name = f"{dig_int(row, 'id')} {dig_text(row, 'name') or '?'}"
        failed = dig_text(row, "when_failed")
        if failed == "now":
            smart.failing.append(name)
        elif failed == "past":
            smart.failed_before.append(name)
    for page in dig_list(data, "ata_device_statistics", "pages"):
        for row in dig_list(page, "table"):
            if dig_text(row, "name") == "Percentage Used Endurance Indicator" and dig_flag(row, "flags", "valid"):
                smart.used_percent = dig_int(row, "value")  # the drive's own report: ACS-3, device statistics
    smart.logged_errors = dig_int(data, "ata_smart_error_log", "extended", "count")
    if smart.logged_errors is None:
        smart.logged_errors = dig_int(data, "ata_smart_error_log", "summary", "count")
    status = dig_int(data, "ata_smart_data", "self_test", "status", "value")
    if status is not None:
        smart.self_test_running = status >> 4 == 15  # ACS-3: high half 15 is 'in progress'


def _scsi(smart: Smart, data: dict[str, Any]) -> None:
    smart.grown_defects = dig_int(data, "scsi_grown_defect_list")
    counts = [
        dig_int(data, "scsi_error_counter_log", way, "total_uncorrected_errors") for way in ("read", "write", "verify")
    ]
    known = [count for count in counts if count is not None]
    if known:
        smart.uncorrectable = sum(known)
    if (used := dig_int(data, "scsi_percentage_used_endurance_indicator")) is not None:
        smart.used_percent = used
    cycles = dig_int(data, "scsi_start_stop_cycle_counter", "accumulated_load_unload_cycles")
    if cycles is not None:
        smart.load_cycles = cycles


def _nvme(smart: Smart, data: dict[str, Any]) -> None:
    log = dig(data, "nvme_smart_health_information_log")
    smart.critical_warning = dig_int(log, "critical_warning")
    smart.spare_percent = dig_int(log, "available_spare")
    if (used := dig_int(log, "percentage_used")) is not None:
        smart.used_percent = used
    smart.media_errors = dig_int(log, "media_errors")
    if (entries := dig_int(log, "num_err_log_entries")) is not None:
        smart.logged_errors = entries


def _complaint(data: dict[str, Any]) -> str | None:
    messages = [dig_text(message, "string") for message in dig_list(data, "smartctl", "messages")]
    first = next((message for message in messages if message), None)
    return f"smartctl: {plain(first)}" if first else None


def rotation(data: dict[str, Any]) -> int | None:
    """Turns per minute; 0 for flash."""
    return dig_int(data, "rotation_rate")


def write_cache(data: dict[str, Any]) -> bool | None:
    """True if the drive's write cache is on."""
    return dig_flag(data, "write_cache", "enabled")


def recovery(data: dict[str, Any]) -> int | None:
    """Time that the drive tries to read a bad sector, in tenths of a second; 0: no limit."""
    if dig_flag(data, "ata_sct_erc", "read", "enabled") is False:
        return 0
    return dig_int(data, "ata_sct_erc", "read", "deciseconds")


def recovery_supported(data: dict[str, Any]) -> bool | None:
    """True if that time can be limited."""
    return dig_flag(data, "ata_sct_capabilities", "error_recovery_control_supported")


def apm(data: dict[str, Any]) -> int | None:
    """Level of Advanced Power Management; 0: off."""
    return 0 if dig_flag(data, "ata_apm", "enabled") is False else dig_int(data, "ata_apm", "level")


def gigabits(data: dict[str, Any], which: str) -> float | None:
    """Speed of the link: `current` or `max`."""
    count = dig_int(data, "interface_speed", which, "units_per_second")
    unit = dig_int(data, "interface_speed", which, "bits_per_unit")
    return None if not count or not unit or count * unit > 1 << 50 else count * unit / 1e9
