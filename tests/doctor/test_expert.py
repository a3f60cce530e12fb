"""Rules beyond geometry and queues: where each rule fires, where it does not, and its texts."""

from __future__ import annotations

import json
import re
import tomllib

import pytest

from spindle.doctor import Severity
from spindle.doctor.rules import firmware, shingled
from spindle.doctor.rules.firmware import KNOWN as FIRMWARE
from spindle.inspect import inspect_stack
from spindle.inspect.smart import smart_of
from tests.doctor.shapes import Shape, add, diagnosis, finding, found_on, healthy
from tests.doctor.test_rules import swapped
from tests.inspect.trees import Layout, load

pytestmark = pytest.mark.promise(24)

NVME = "sys/devices/pci0000:00/0000:00:06.0/0000:01:00.0"
TANK = "tools/zpool-status/all"


def unknown_to(layout: Layout, rule: str) -> set[str]:
    return {one.object for one in diagnosis(layout).unjudged if one.rule == rule}


def smart(shape: Shape, which: int, data: str) -> Layout:
    return add(healthy(shape), f"[]\ntools/smartctl/{shape.names[which]} <<END\n{data}\nEND")


# --- members ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("level", "timeout", "recovery", "commands"),
    [
        ("raid1", 30, '"read": {"enabled": false}', "smartctl -q errorsonly -l scterc,70,70 /dev/sda"),
        ("raid1", 180, '"read": {"enabled": false}', None),
        ("raid1", 30, '"read": {"enabled": true, "deciseconds": 70}', None),
        (
            "raid1",
            30,
            '"read": {"enabled": true, "deciseconds": 300}',
            "smartctl -q errorsonly -l scterc,70,70 /dev/sda",
        ),
        ("raid0", 30, '"read": {"enabled": false}', None),
    ],
)
def test_error_recovery_is_compared_with_the_kernels_timeout(
    level: str, timeout: int, recovery: str, commands: str | None
) -> None:
    shape = Shape(level=level, disks=2, partitions=False)
    layout = smart(shape, 0, f'{{"smart_status": {{"passed": true}}, "ata_sct_erc": {{{recovery}}}}}')
    add(layout, f"[{shape.folder(0)}/../..]\ntimeout={timeout}")
    found = [one for one in diagnosis(layout).findings if one.rule == "error-recovery"]
    assert [one.steps[0].commands for one in found] == ([[commands]] if commands else [])


def test_the_limit_is_kept_by_the_drives_serial_number() -> None:
    (command,) = finding(load("home-nas"), "error-recovery").steps[1].commands
    assert 'ENV{ID_SERIAL_SHORT}=="' in command
    assert "KERNEL" not in command


def test_the_kernel_waits_longer_for_a_drive_without_error_recovery_control() -> None:
    shape = Shape(level="raid1", disks=2)
    words = "sys/devices/pci0000:00/0000:00:1f.2/ata1/link1/dev1.0/ata_device/dev1.0/id"
    layout = swapped(healthy(shape), words, "303d", "3037")
    assert finding(layout, "error-recovery").steps[0].commands == ["spindle knobs set sda timeout=180"]
    assert unknown_to(layout, "error-recovery") == {"sdb"}, "it may have it: smartctl was not there"


@pytest.mark.parametrize(("word", "value"), [(69, "0002"), (169, "0001")], ids=["it says so", "it takes TRIM"])
def test_a_shingled_drive_is_detected(word: int, value: str) -> None:
    shape = Shape(level="raid1", disks=2)
    path = "sys/devices/pci0000:00/0000:00:1f.2/ata1/link1/dev1.0/ata_device/dev1.0/id"
    layout = healthy(shape)
    words = layout.files[path].decode().split()
    words[word] = value
    layout.files[path] = "\n".join(" ".join(words[at : at + 8]) for at in range(0, 256, 8)).encode()
    assert found_on(layout) == {("shingled", "sda")}


def test_a_shingled_drive_outside_arrays_is_not_a_finding() -> None:
    assert ("shingled", "sdb") not in found_on(load("bcache")), "an ST4000DM004 that is in no array"


@pytest.mark.parametrize("model", ["WDC WD40EFRX-68N", "ST4000VN006-3CW1", "ST8000NM0055-1RM", "TOSHIBA HDWN180"])
def test_conventional_drives_are_not_mistaken_for_shingled(model: str) -> None:
    assert not any(pattern.match(model) for pattern, _, _ in shingled._known())


def test_a_pool_has_members_as_an_array_has() -> None:
    layout = load("zfs-raidz")
    for path in [path for path in layout.files if "ata2/" in path and path.endswith("/model")]:
        layout.files[path] = b"ST4000DM004-2CV1\n"
    assert ("shingled", "sdb") in found_on(layout)


def test_sectors_of_two_sizes() -> None:
    shape = Shape(level="raid1", disks=2)
    layout = add(healthy(shape), f"[{shape.folder(0)}]\nqueue/logical_block_size=4096")
    assert finding(layout, "sector-sizes").severity is Severity.WARN
    layout = add(healthy(shape), f"[{shape.folder(0)}]\nqueue/physical_block_size=512\nqueue/minimum_io_size=512")
    assert finding(layout, "sector-sizes").severity is Severity.NOTE


@pytest.mark.parametrize(
    ("model", "version", "bad"),
    [
        ("VO0480JFDGT", "HPD7", True),
        ("VO0480JFDGT", "HPD8", False),
        ("HP VO0480JFDGT", "HPD5", True),
        ("MK0800JVYPQ", "HPD6", True),
        ("MK0800JVYPQ", "HPD7", False),
        ("M4-CT256M4SSD2", "0009", True),
        ("M4-CT256M4SSD2", "0309", False),
        ("Samsung SSD 980 PRO 1TB", "5B2QGXA7", False),
        ("Samsung SSD 990 PRO 2TB", "0B2QJXD7", True),
        ("ST31000340AS", "SD15", True),
        ("ST31000340AS", "SD1A", False),
        ("ST31500341AS", "SD17", True),
        ("ST31500341AS", "CC1H", False),
        ("M4-CT256M4SSD3", "000F", False),
        ("C400-MTFDDAK256MAM", "0002", True),
        ("INTEL SSDSA2CW160G3", "4PC10302", True),
        ("INTEL SSDSA2CW160G3", "4PC10362", False),
        ("INTEL SSDSA2BW160G3L", "4PC1LE04", False),
        ("Samsung SSD 840 EVO 1TB", "EXT0BB0Q", True),
        ("Samsung SSD 840 EVO 250GB", "EXT0CB6Q", True),
        ("Samsung SSD 840 EVO 250GB", "EXT0DB6Q", False),
        ("Samsung SSD 840 EVO 120GB mSATA", "EXT41B6Q", False),
        ("ST4000VN006-3CW104", "SC60", False),
    ],
)
def test_firmware_is_distinguished_by_its_version(model: str, version: str, bad: bool) -> None:
    assert any(fault.fits(model, version) for fault in firmware._known()) is bad


def test_every_faulty_firmware_has_its_source_and_its_remedy() -> None:
    rows = tomllib.loads(FIRMWARE.read_text())["fault"]
    assert len(rows) >= 6
    for row in rows:
        assert {"model", "firmware", "what", "fixed", "source"} <= row.keys()
        re.compile(row["model"])


def test_a_model_longer_than_what_scsi_keeps_of_it_is_known_by_identify() -> None:
    shape = Shape(level="raid1", disks=2)
    path = "sys/devices/pci0000:00/0000:00:1f.2/ata1/link1/dev1.0/ata_device/dev1.0/id"
    layout = add(healthy(shape), f"[{shape.folder(0)}/../..]\nmodel=INTEL SSDSA2CW16")
    words = layout.files[path].decode().split()
    for at, text in ((23, "4PC10302"), (27, "INTEL SSDSA2CW160G3".ljust(40))):
        raw = text.encode()
        words[at : at + len(raw) // 2] = [raw[i : i + 2].hex() for i in range(0, len(raw), 2)]
    layout.files[path] = "\n".join(" ".join(words[at : at + 8]) for at in range(0, 256, 8)).encode()
    assert "INTEL SSDSA2CW160G3, firmware 4PC10302" in finding(layout, "firmware").evidence


def test_firmware_that_costs_speed_alone_is_a_warning() -> None:
    layout = load("md-raid10-n2-xfs")
    place = next(path for path in layout.files if "end_device-0:0/" in path and path.endswith("/model"))
    layout.files[place], layout.files[place.replace("/model", "/rev")] = b"Samsung SSD 840 EVO 1TB\n", b"EXT0BB6Q\n"
    found = finding(layout, "firmware")
    assert found.severity is Severity.WARN
    assert "slow it down" in found.summary


@pytest.mark.parametrize(
    "model",
    [
        "WDC WD40EFAX-68J",
        "WDC WD40EZAZ-00S",
        "WDC WD10SPZX-22Z",
        "ST2000DM008-2FR1",
        "ST4000DM005-2DP1",
        "ST4000LM024-2AN1",
        "ST8000AS0002-1NA",
        "TOSHIBA HDWD240",
        "TOSHIBA HDWL120",
        "TOSHIBA DT02ABA4",
        "TOSHIBA MQ04ABF1",
    ],
)
def test_the_models_of_the_table_are_found_also_by_the_16_characters_that_scsi_has(model: str) -> None:
    assert any(pattern.match(model) for pattern, _, _ in shingled._known())


def test_the_hours_left_are_shown() -> None:
    layout = load("md-raid10-n2-xfs")
    place = next(path for path in layout.files if "end_device-0:0/" in path and path.endswith("/model"))
    layout.files[place], layout.files[place.replace("/model", "/rev")] = b"VO0480JFDGT\n", b"HPD5\n"
    swapped(layout, "tools/smartctl/sda", '"hours":41234', '"hours":32000')
    assert "768 before it happens" in finding(layout, "firmware").evidence


@pytest.mark.parametrize(
    ("answer", "used"),
    [
        ({"nvme_smart_health_information_log": {"percentage_used": 85}}, 85),
        ({"scsi_percentage_used_endurance_indicator": 90}, 90),
        ({"ata_smart_attributes": {"table": [{"id": 177, "name": "Wear_Leveling_Count", "value": 12}]}}, 88),
        (
            {
                "ata_device_statistics": {
                    "pages": [
                        {
                            "table": [
                                {"name": "Percentage Used Endurance Indicator", "value": 81, "flags": {"valid": True}}
                            ]
                        }
                    ]
                }
            },
            81,
        ),
        ({"ata_smart_attributes": {"table": [{"id": 9, "name": "Power_On_Hours", "value": 20}]}}, None),
    ],
)
def test_wear_is_read_in_every_form_that_drives_report(answer: dict[str, object], used: int | None) -> None:
    assert smart_of(answer, "x").used_percent == used


def test_flash_that_does_not_report_its_wear_is_not_fine() -> None:
    assert unknown_to(load("sata-ssd"), "wear") == {"sda"}


# --- arrays ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "knob"),
    [
        ("md/sync_action=recover\nmd/sync_completed=1 / 9\nmd/sync_speed=190000", "sync_speed_max=400000"),
        ("md/sync_action=recover\nmd/sync_completed=1 / 9\nmd/sync_speed=1900", "sync_speed_min=50000"),
        ("md/sync_action=recover\nmd/sync_completed=1 / 9\nmd/sync_speed=90000", None),
        ("md/sync_speed_max=1000 (local)", "sync_speed_max=200000"),
    ],
)
def test_the_cause_of_a_slow_resync_is_found(lines: str, knob: str | None) -> None:
    shape = Shape(level="raid6", disks=6)
    layout = add(healthy(shape), f"[{shape.array}]\n{lines}")
    found = [one for one in diagnosis(layout).findings if one.rule == "md-sync-speed"]
    assert [step.commands[0].split()[-1] for one in found for step in one.steps[:1]] == ([knob] if knob else [])


@pytest.mark.parametrize("policy", ["journal", "ppl"])
def test_a_journal_replaces_a_bitmap(policy: str) -> None:
    shape = Shape(disks=4)
    layout = add(healthy(shape), f"[{shape.array}]\nmd/bitmap/location=none\nmd/consistency_policy={policy}")
    if policy == "journal":
        add(layout, f"[{shape.array}]\nmd/dev-sdz/state=journal,in_sync\nmd/dev-sdz/slot=journal\nmd/dev-sdz/errors=0")
    assert ("md-no-bitmap", "md0") not in found_on(layout)


# --- memory, swap, CPUs, links ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("ratio", "expected"), [(20, True), (4, False)])
def test_dirty_memory_is_compared_with_the_write_rate_of_the_drives(ratio: int, expected: bool) -> None:
    layout = add(load("sata-ssd"), f"[]\nproc/sys/vm/dirty_bytes=0\nproc/sys/vm/dirty_ratio={ratio}")
    assert (("dirty-memory", "machine") in found_on(layout)) is expected
    layout.files["proc/meminfo"] = b""
    assert unknown_to(layout, "dirty-memory") == {"machine"}


@pytest.mark.parametrize(
    ("tree", "swap", "used", "severity"),
    [
        ("lvm-on-md", "/dev/dm-0", 0, Severity.NOTE),
        ("lvm-on-md", "/dev/dm-0", 600, Severity.WARN),
        ("lvm-on-md", "/var/swap\\040file", 0, Severity.NOTE),
        ("sata-ssd", "/dev/sda1", 600, None),
    ],
)
def test_swap_on_rotating_drives(tree: str, swap: str, used: int, severity: Severity | None) -> None:
    layout = add(load(tree), f"[]\nproc/swaps <<END\nFilename Type Size Used Priority\n{swap} file 1000 {used} -2\nEND")
    assert [one.severity for one in diagnosis(layout).findings] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("policy", "severity"),
    [("min_power", Severity.WARN), ("med_power_with_dipm", Severity.NOTE), ("max_performance", None)],
)
def test_sleep_of_sata_links(policy: str, severity: Severity | None) -> None:
    shape = Shape(level="raid1", disks=2)
    host = "sys/devices/pci0000:00/0000:00:1f.2/ata1/host0/scsi_host/host0"
    layout = add(healthy(shape), f"[{host}]\nlink_power_management_policy={policy}")
    assert [one.severity for one in diagnosis(layout).findings] == ([severity] if severity else [])


@pytest.mark.parametrize(
    ("level", "cycles", "expected"), [(127, 0, True), (128, 0, False), (254, 200_000, True), (0, 9, False)]
)
def test_a_drive_that_sleeps_or_parks(level: int, cycles: int, expected: bool) -> None:
    answer = {
        "smart_status": {"passed": True},
        "power_on_time": {"hours": 10000},
        "ata_apm": {"enabled": level > 0, "level": level},
        "ata_smart_attributes": {"table": [{"id": 193, "raw": {"value": cycles}}]},
    }
    data = json.dumps(answer)
    layout = smart(Shape(level="raid0", disks=2), 0, data)
    assert found_on(layout) == ({("spin-down", "sda")} if expected else set())


@pytest.mark.parametrize(
    ("driver", "governor", "expected"),
    [("acpi-cpufreq", "powersave", True), ("intel_pstate", "powersave", False), ("acpi-cpufreq", "schedutil", False)],
)
def test_the_clock_of_cpus_beside_nvme(driver: str, governor: str, expected: bool) -> None:
    place = "sys/devices/system/cpu/cpu0/cpufreq"
    layout = add(load("nvme-ext4"), f"[{place}]\nscaling_driver={driver}\nscaling_governor={governor}")
    assert found_on(layout) == ({("cpu-latency", "machine")} if expected else set())
    layout.remove("sys/devices/system/cpu/cpu0")
    assert unknown_to(layout, "cpu-latency") == {"machine"}
    assert found_on(add(load("sata-ssd"), f"[{place}]\nscaling_driver={driver}\nscaling_governor={governor}")) == set()


def test_a_port_with_lowered_speed_and_one_at_its_limit() -> None:
    shape = Shape(level="raid1", disks=2)
    layout = healthy(shape)
    for at in (1, 2):
        add(layout, f"[sys/devices/pci0000:00/0000:00:1f.2/ata{at}/link{at}/ata_link/link{at}]\nsata_spd=3.0 Gbps")
    assert {one.severity for one in diagnosis(layout).findings} == {Severity.NOTE}
    for at in (1, 2):
        add(
            layout,
            f"[sys/devices/pci0000:00/0000:00:1f.2/ata{at}/link{at}/ata_link/link{at}]\nhw_sata_spd_limit=3.0 Gbps",
        )
    assert found_on(layout) == set()


def test_a_sas_phy_that_is_slower_than_it_supports() -> None:
    layout = load("md-raid10-n2-xfs")
    for path in [path for path in layout.files if path.endswith("negotiated_linkrate") and "phy-0:0/" in path]:
        layout.files[path] = b"3.0 Gbit\n"
        layout.files[path.replace("negotiated_linkrate", "maximum_linkrate_hw")] = b"6.0 Gbit\n"
    assert ("drive-link", "sda") in found_on(layout)


# --- multipath -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("queueing", "words"), [("on", "for ever"), ("off", "at once"), ("-", "at once"), ("12 chk", None), (None, None)]
)
def test_behaviour_without_any_path_left(queueing: str | None, words: str | None) -> None:
    layout = load("fc-policy")
    if queueing is None:
        layout.remove("tools/multipathd/maps")
        assert unknown_to(layout, "multipath-policy") <= {"dm-0"}
    else:
        swapped(layout, "tools/multipathd/maps", '"queueing":"on"', f'"queueing":"{queueing}"')
    summaries = [one.summary for one in diagnosis(layout).findings if "no path is left" in one.summary]
    assert [words in summary for summary in summaries if words] == ([True] if words else [])


def test_equal_paths_that_are_used_one_at_a_time() -> None:
    layout = load("fc-policy")
    for path in [path for path in layout.files if path.endswith("access_state")]:
        layout.files[path] = b"active/optimized\n"
    groups = " ".join(f"service-time 0 1 2 8:{minor} 1 1" for minor in (16, 48, 32, 64))
    layout.files["tools/dmsetup-table/dm-0"] = f"0 2147483648 multipath 0 1 alua 4 1 {groups}\n".encode()
    assert any("one path of 4 that are equally good" in one.summary for one in diagnosis(layout).findings)


# --- caches, encryption ----------------------------------------------------------------------------------------------


def cached(table: str) -> Layout:
    """An LVM volume cached on flash: origin sdb, cache sda1."""
    layout = load("bcache")
    for path in ("sys/class/block/bcache0", "sys/block/bcache0", "sys/devices/virtual/block/bcache0"):
        layout.remove(path)
    layout.files["proc/self/mountinfo"] = b"31 29 253:2 / /home rw,relatime - xfs /dev/mapper/vg-home rw\n"
    return add(
        layout,
        "holder sdb dm-2\nholder sda1 dm-2\ndevice sys/devices/virtual/block/dm-2\ndev=253:2\nsize=7814037152\n"
        "dm/name=vg-home\ndm/uuid=LVM-1\nslaves/sdb -> /sys/class/block/sdb\nslaves/sda1 -> /sys/class/block/sda1\n"
        f"queue/read_ahead_kb=128\n[]\ntools/dmsetup-table/dm-2=0 7814037152 {table}",
    )


@pytest.mark.parametrize(
    ("table", "command"),
    [
        ("cache 8:1 8:1 8:16 128 1 writeback smq 0", "lvchange --cachemode writethrough vg/home"),
        ("cache 8:1 8:1 8:16 128 0 smq 0", "lvchange --cachemode writethrough vg/home"),
        ("cache 8:1 8:1 8:16 128 1 writethrough smq 0", None),
        ("cache 8:1 8:1 8:16 128 2 metadata2 passthrough smq 0", None),
        ("writecache s 8:16 8:1 4096 0", "lvconvert --splitcache vg/home"),
    ],
)
def test_a_write_back_cache_on_one_device(table: str, command: str | None) -> None:
    found = [one for one in diagnosis(cached(table)).findings if one.rule == "cache-redundancy"]
    assert [one.steps[0].commands for one in found] == ([[command]] if command else [])


def test_a_cache_on_an_unknown_device_is_not_judged() -> None:
    assert unknown_to(load("bcache"), "cache-redundancy") == {"bcache0"}


@pytest.mark.parametrize("word", ["ignore_discard", "no_discard_passdown"])
def test_a_thin_pool_that_keeps_discards(word: str) -> None:
    layout = cached(f"thin-pool 8:1 8:1 128 0 1 {word}")
    layout.remove("sys/devices/virtual/block/dm-2/slaves/sdb")
    assert ("discard", "dm-2") in found_on(layout)
    layout.files["tools/dmsetup-table/dm-2"] = b"0 7814037152 thin-pool 8:1 8:1 128 0 0\n"
    assert ("discard", "dm-2") not in found_on(layout)


@pytest.mark.parametrize(
    ("options", "kernel", "command"),
    [
        ("", "6.8.0", "--perf-no_read_workqueue --perf-no_write_workqueue"),
        (" 1 allow_discards", "6.8.0", "--allow-discards --perf-no_read_workqueue --perf-no_write_workqueue"),
        (" 3 allow_discards no_read_workqueue no_write_workqueue", "6.8.0", None),
        ("", "5.4.0", None),
    ],
)
def test_flags_of_encryption_are_kept_when_others_are_added(options: str, kernel: str, command: str | None) -> None:
    layout = add(load("luks-nvme"), f"[]\nproc/sys/kernel/osrelease={kernel}")
    table = layout.files["tools/dmsetup-table/dm-0"].decode().strip()
    layout.files["tools/dmsetup-table/dm-0"] = f"{table}{options}\n".encode()
    found = [one for one in diagnosis(layout).findings if one.rule == "luks-queues"]
    wanted = [[f"cryptsetup {command} --persistent refresh root"]] if command else []
    assert [one.steps[0].commands for one in found] == wanted


def test_no_key_of_a_table_is_kept() -> None:
    key = "0123456789abcdef" * 4
    layout = load("luks-nvme")
    swapped(layout, "tools/dmsetup-table/dm-0", ":64:logon:cryptsetup:6d4c1b5e-d0", key)
    device = inspect_stack(None, layout.held()).device("dm-0")
    assert device is not None
    assert key not in str(device)


# --- file systems ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mount", "default", "mode"),
    [
        ("rw", "user_xattr acl", "ordered"),
        ("rw", "user_xattr acl journal_data", "journal"),
        ("rw", "journal_data_writeback", "writeback"),
        ("rw,data=ordered", "journal_data", "ordered"),
    ],
)
def test_the_mode_of_ext4_is_the_mounts_or_the_superblocks(mount: str, default: str, mode: str) -> None:
    layout = swapped(load("home-nas"), "proc/self/mountinfo", "rw,data=journal", mount)
    swapped(layout, "tools/dumpe2fs/md0", "user_xattr acl", default)
    assert inspect_stack("/srv", layout.held()).file_systems[0].journal == mode
    assert (("ext4-journal", "fs:/srv") in found_on(layout)) is (mode != "ordered")


def test_the_pool_of_a_dataset_is_shown_with_its_drives() -> None:
    inventory = inspect_stack("/tank/vm/images", load("zfs-raidz").held())
    (pool,) = inventory.pools
    assert (inventory.tops, pool.below) == (["fs:/tank"], ["sda1", "sdb1", "sdc1", "sdd1"])
    assert (pool.state, pool.ashifts, pool.fragmentation_percent) == ("DEGRADED", [9], 61)
    assert [(one.device, one.state, one.group, one.errors) for one in pool.members][1:3] == [
        ("sdb1", "ONLINE", "raidz1-0", 12),
        ("sdc1", "FAULTED", "raidz1-0", 107),
    ]


@pytest.mark.parametrize(
    ("old", "new", "commands"),
    [
        ("", "", ["zpool status -v tank", "zpool replace tank OLD NEW"]),
        ("scan: scrub repaired", "scan: resilver in progress since x, repaired", ["zpool status -v tank"]),
        ("state: DEGRADED", "state: SUSPENDED", ["zpool status -v tank"]),
        ("No known data errors", "3 data errors, use '-v' for a list", ["zpool status -v tank"]),
    ],
)
def test_the_remedy_of_a_pool_follows_its_state(old: str, new: str, commands: list[str]) -> None:
    layout = swapped(load("zfs-raidz"), TANK, old, new)
    pools = [one for one in diagnosis(layout).findings if one.rule == "zfs-pool"]
    found = next(one for one in pools if re.search("not healthy|lost data", one.summary))
    assert [command for step in found.steps for command in step.commands] == commands


@pytest.mark.parametrize(
    ("scan", "waits"), [("scrub repaired", []), ("scrub in progress", ["zpool:tank is being checked"])]
)
def test_a_pool_is_not_scrubbed_twice(scan: str, waits: list[str]) -> None:
    layout = swapped(load("zfs-raidz"), TANK, "DEGRADED", "ONLINE")
    swapped(layout, TANK, "FAULTED      3   104     0  too many errors", "ONLINE       0     0     0")
    swapped(layout, TANK, "scrub repaired", scan)
    found = next(one for one in diagnosis(layout).findings if one.summary == "tank is not healthy")
    (scrub,) = [step for step in found.steps if step.commands == ["zpool scrub tank"]]
    assert scrub.waits == waits


def test_zfs_without_its_tools_is_not_fine() -> None:
    layout = load("zfs-raidz")
    for name in ("zpool-status", "zpool-list", "zdb"):
        layout.remove(f"tools/{name}")
    assert {one.rule for one in diagnosis(layout).unjudged} >= {"zfs-pool", "zfs-ashift"}
    assert found_on(layout) == set()
