"""The commands of a fix plan do no harm in any state of the array, drive, unit or file system that they touch."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from spindle.doctor import RULES, diagnose, script
from spindle.inspect import inspect_stack
from tests.doctor.shapes import Shape, add, diagnosis, finding, geometry, healthy
from tests.doctor.test_planted import FAULTS
from tests.inspect.trees import NAMES, Layout, load

pytestmark = pytest.mark.promise(23)

ARRAY_STATES: dict[str, str] = {
    "clean": "",
    "active": "md/array_state=active",
    "mismatched": "md/mismatch_cnt=128",
    "degraded": "md/degraded=1\nmd/dev-{member} absent\nslaves/{member} absent",
    "faulty": "md/degraded=1\nmd/dev-{member}/state=faulty\nmd/dev-{member}/slot=none",
    "rebuilding": "md/degraded=1\nmd/sync_action=recover\nmd/sync_completed=1000 / 9000\nmd/sync_speed=50000\n"
    "md/dev-{member}/state=spare",
    "resyncing": "md/sync_action=resync\nmd/sync_completed=1000 / 9000\nmd/sync_speed=50000",
    "delayed": "md/sync_action=resync\nmd/sync_completed=delayed",
    "checking": "md/sync_action=check\nmd/sync_completed=1000 / 9000\nmd/sync_speed=50000",
    "repairing": "md/sync_action=repair\nmd/sync_completed=1000 / 9000\nmd/sync_speed=50000",
    "reshaping": "md/sync_action=reshape\nmd/sync_completed=1000 / 9000\nmd/sync_speed=50000",
    "frozen": "md/sync_action=frozen",
    "suspended": "md/array_state=suspended",
    "readonly": "md/array_state=readonly",
    "read-auto": "md/array_state=read-auto",
    "inactive": "md/array_state=inactive",
    "broken": "md/array_state=broken\nmd/degraded=1",
    "too many": "md/degraded=9\nmd/dev-{member}/state=faulty",
    "journal": "md/consistency_policy=journal\nmd/dev-sdz/state=faulty,journal\nmd/dev-sdz/slot=journal",
    "unknown": "md/array_state absent\nmd/degraded absent\nmd/sync_action absent",
}
"""As sysfs shows them (Documentation/admin-guide/md.rst)."""

WHOLE = {"clean", "active", "mismatched"}
READ_ONLY = {"readonly", "read-auto"}
LOOKS = re.compile(
    r"mdadm --(detail|examine) |smartctl -n standby -x |smartctl --scan$|cat /sys/|du -xh |dumpe2fs -h |"
    r"btrfs device stats |nvme list-subsys$|multipath -ll |tw_cli /c\d+ show$|\w+64 /c\d+ show all$|vmstat 1 5$|"
    r"smartctl -n standby -d sat -x |zpool status -v |zfs list |lvs -a -o "
)
"""Ask for what is known; they hurt in no state."""
LIVE: list[tuple[str, set[str]]] = [
    (r"echo (check|repair) > \S+sync_action|(btrfs|zpool) scrub|smartctl .*-t ", WHOLE),
    (r"mdadm --grow|tune2fs ", WHOLE),
    (r"mdadm \S+ --remove ", set(ARRAY_STATES) - {"broken", "too many", "inactive", "frozen", "suspended"}
     - {"reshaping", "journal", "unknown"}),
    (r"spindle knobs (set|persist --yes) \S+ sync_speed_m(ax|in)=", set(ARRAY_STATES) - {"broken", "too many"}
     - {"inactive", "frozen", "suspended", "journal", "unknown"}),
    (r"spindle knobs (set|persist --yes) \S+ 'write_cache=|mount -o remount,barrier", set(ARRAY_STATES) - {"broken"}
     - {"too many", "inactive"}),
    (r"echo writethrough > \S+cache_mode", set(ARRAY_STATES) - {"broken", "too many", "inactive"}),
    (r"spindle knobs (set|persist --yes) (vm|cpu)\.|cpupower idle-set ", set(ARRAY_STATES)),
    (r"lvchange --(cachemode|discards) |lvconvert --splitcache ", WHOLE),
    (r"smartctl -q errorsonly -l scterc,|hdparm -B |echo \S+ > /sys/(class/scsi_host|bus/pci)/", WHOLE | READ_ONLY),
    (r"echo .* > /etc/udev/rules.d/", WHOLE | READ_ONLY),
    (r"tw_cli \S+ set cache=off$|\w+64 \S+ set wrcache=wt$", set(ARRAY_STATES)),
    (r"spindle knobs (set|persist --yes) |mount -o remount|cryptsetup .*refresh|modprobe ", WHOLE | READ_ONLY),
    (r"tw_cli \S+ set cache=on$|\w+64 \S+ set wrcache=wb$", WHOLE | READ_ONLY),
]  # fmt: skip
"""Effect of a line -> the states in which it may be a command; the first that matches."""


def lines_of(layout: Layout, target: str | None = None) -> list[str]:
    """The script's commands as the shell sees them."""
    lines = script(diagnose(inspect_stack(target, layout.held())))
    return [line for line in lines if line and not line.startswith("#") and line != "set -u"]


def allowed(line: str) -> set[str]:
    if LOOKS.match(line):
        return set(ARRAY_STATES)
    for pattern, states in LIVE:
        if re.match(pattern, line):
            return states
    raise AssertionError(f"what does this line do, and in which states does it hurt? {line}")


def in_state(layout: Layout, array: str, member: str, state: str) -> Layout:
    return add(layout, f"[{array}]\n" + ARRAY_STATES[state].format(member=member))


SHAPES = [
    Shape(disks=4, table=True, fs="ext4"),
    Shape(level="raid6", drive="sas", disks=6, volume=True),
    Shape(level="raid10", drive="nvme", disks=4),
    Shape(level="raid5", drive="nvme", disks=3),
    Shape(level="raid1", disks=2, partitions=False, fs="ext4"),
]
ALONE = {"degraded", "busy", "resync_starved"}
"""Faults that are states themselves."""


def sick(shape: Shape) -> Iterator[Layout]:
    """All faults at once, in as few stacks as possible: a fault that another overwrites is in the next stack."""
    for step in (1, 2):
        layout = healthy(shape)
        for fault in FAULTS[::step]:
            if fault.__name__ not in ALONE:
                fault(shape, layout, 1)
        yield layout


@pytest.mark.parametrize("state", ARRAY_STATES)
def test_no_command_in_the_plan_does_harm_in_the_state_of_the_array(state: str) -> None:
    live = 0
    for shape in SHAPES:
        for layout in sick(shape):
            for line in lines_of(in_state(layout, shape.array, shape.members[0], state)):
                assert state in allowed(line), f"{shape.level}, {state}: {line}"
                live += 1
    assert live, "what can be looked at is looked at in every state"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("state", ARRAY_STATES)
def test_no_command_does_harm_on_a_captured_stack_in_any_state(name: str, state: str) -> None:
    layout = load(name)
    arrays = sorted({path.partition("/md/")[0] for path in layout.files if "/md/level" in path})
    if state == "clean" or not arrays:
        for line in lines_of(layout):
            allowed(line)
        return
    for array in arrays:
        member = next(path for path in layout.files if path.startswith(f"{array}/md/dev-")).split("/dev-")[1]
        for line in lines_of(in_state(layout, array, member.partition("/")[0], state)):
            assert state in allowed(line), line


def firing() -> Iterator[Layout]:
    for shape in SHAPES:
        yield from sick(shape)
        for fault in FAULTS:
            layout = healthy(shape)
            if fault(shape, layout, 0):
                yield layout
    yield from map(load, NAMES)


def test_every_rule_is_among_those_that_are_tried() -> None:
    found = {found.rule for layout in firing() for found in diagnosis(layout).findings}
    assert found == {rule.name for rule in RULES}


def test_each_fault_alone_keeps_its_remedy_on_a_healthy_array() -> None:
    """States delay remedies; they do not remove them."""
    shape = Shape(disks=4, fs="ext4")
    for fault in FAULTS:
        layout = healthy(shape)
        if fault(shape, layout, 1) and fault.__name__ not in {*ALONE, "failing"}:
            steps = [step for found in diagnosis(layout).findings for step in found.steps]
            assert not any(step.waits for step in steps), fault.__name__


# --- the case of the issue, and its like -----------------------------------------------------------------------------


def large_raid5() -> tuple[Shape, Layout]:
    shape = Shape(disks=4)
    return shape, add(healthy(shape), f"[{shape.array}]\nmd/component_size={8 * 10**12 // 1024}")


def test_a_raid5_is_not_checked_before_its_rebuild_has_finished() -> None:
    shape, layout = large_raid5()
    check = "echo check > /sys/block/md0/md/sync_action"
    assert check in lines_of(layout)
    in_state(layout, shape.array, "sdd1", "rebuilding")
    lines = script(diagnosis(layout))
    assert check not in lines
    at = lines.index(f"# {check}")
    assert "# WAIT: md0 is being rebuilt" in lines[at - 3 : at]
    wait = next(at for at, line in enumerate(lines) if line.startswith("# --- Wait: "))
    protect = next(at for at, line in enumerate(lines) if line.startswith("# --- Look: "))
    assert protect < wait < at


def test_a_degraded_array_gets_its_drive_before_its_settings() -> None:
    shape = Shape(disks=4)
    layout = add(healthy(shape), f"[{shape.array}]\nmd/stripe_cache_size=256")
    assert any("stripe_cache_size" in line for line in lines_of(layout))
    in_state(layout, shape.array, "sdd1", "degraded")
    lines = script(diagnosis(layout))
    drive = lines.index("# mdadm /dev/md0 --add /dev/NEW")
    setting = next(at for at, line in enumerate(lines) if "stripe_cache_size=" in line)
    assert drive < setting
    assert lines[setting].startswith("# ")
    assert "# WAIT: md0 is degraded" in lines


def test_an_array_that_lost_too_much_is_left_as_it_is() -> None:
    shape = Shape(disks=4)
    layout = healthy(shape)
    for member in ("sda1", "sdb1"):
        add(layout, f"[{shape.array}]\nmd/dev-{member}/state=faulty\nmd/dev-{member}/slot=none")
    add(layout, f"[{shape.array}]\nmd/degraded=2")
    found = finding(layout, "md-degraded")
    assert "more members than it tolerates" in found.summary
    lines = lines_of(layout)
    assert any(line.startswith("mdadm --examine /dev/sd") for line in lines)
    assert not any("--remove" in line for line in lines)


def test_an_array_that_does_not_run_is_found() -> None:
    shape = Shape(level="raid6", disks=5)
    layout = in_state(healthy(shape), shape.array, "sda1", "inactive")
    assert "does not run" in finding(layout, "md-degraded").summary


def test_the_places_of_raid10_that_may_go_are_counted() -> None:
    shape = Shape(level="raid10", disks=4, near=2)
    layout = add(healthy(shape), f"[{shape.array}]\nmd/degraded=2")
    assert "is degraded" in finding(layout, "md-degraded").summary
    add(layout, f"[{shape.array}]\nmd/degraded=3")
    assert "more members" in finding(layout, "md-degraded").summary


def test_a_lost_journal_is_found_and_its_array_is_not_touched() -> None:
    shape = Shape(disks=4)
    layout = in_state(healthy(shape), shape.array, "sda1", "journal")
    found = finding(layout, "md-member")
    assert (found.object, "journal" in found.summary) == ("sdz", True)
    assert not [line for line in lines_of(layout) if not LOOKS.match(line)]


def test_no_drive_is_added_while_another_member_fails() -> None:
    """A rebuild reads all of the failing one."""
    shape = Shape(disks=4)
    layout = in_state(healthy(shape), shape.array, "sdd1", "degraded")
    (add_step,) = [step for step in finding(layout, "md-degraded").steps if any("--add" in c for c in step.commands)]
    assert not add_step.waits
    add(layout, '[]\ntools/smartctl/sda={"smart_status": {"passed": false}}')
    (add_step,) = [step for step in finding(layout, "md-degraded").steps if any("--add" in c for c in step.commands)]
    assert add_step.waits == ["sda shows signs of failing"]


def test_a_cable_of_a_degraded_array_is_not_pulled() -> None:
    shape = Shape(disks=4)
    layout = healthy(shape)
    add(layout, "[sys/devices/pci0000:00/0000:00:1f.2/ata1/link1/ata_link/link1]\nsata_spd=1.5 Gbps")
    (step,) = finding(layout, "drive-link").steps
    assert not step.waits
    in_state(layout, shape.array, "sdd1", "degraded")
    (step,) = finding(layout, "drive-link").steps
    assert step.waits == ["md0 is degraded"]


# --- what else has a state -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["sda", "/dev/sda1"])
def test_an_array_above_the_target_is_looked_at_too(target: str) -> None:
    shape = Shape(disks=4)
    layout = add(healthy(shape), f"[{shape.folder(0)}]\nqueue/nr_requests=16")
    assert any("nr_requests" in line for line in lines_of(layout, target))
    in_state(layout, shape.array, "sdd1", "rebuilding")
    assert not any("nr_requests" in line for line in lines_of(layout, target))


def second_array(shape: Shape) -> str:
    parts = ""
    for at in range(2):
        name = shape.names[at]
        parts += (
            f"device {shape.folder(at)}/{name}2\ndev=259:{150 + at}\npartition=2\nstart=1000001536\nsize=2048000\n"
            f"alignment_offset=0\nro=0\nholder {name}2 md9\n"
        )
    array = "sys/devices/virtual/block/md9"
    parts += f"device {array}\ndev=9:9\nsize=2048000\nmd/level=raid1\nmd/raid_disks=2\nmd/degraded=1\n"
    parts += "md/array_state=clean\nmd/sync_action=recover\nmd/sync_completed=1 / 9\n"
    return parts + "".join(f"slaves/{name}2 -> /sys/class/block/{name}2\n" for name in shape.names[:2])


def test_a_check_waits_for_another_array_on_the_same_drives() -> None:
    shape, layout = large_raid5()
    add(layout, second_array(shape))
    (check,) = [step for step in finding(layout, "ure").steps if "echo check" in step.commands[0]]
    assert check.waits == ["md9 is degraded", "md9 is being rebuilt"]


@pytest.mark.parametrize(
    ("drive", "words"),
    [
        ('{"smart_status": {"passed": false}}', "sdb shows signs of failing"),
        (
            '{"smart_status": {"passed": true}, "ata_smart_attributes": {"table": [{"id": 197, "raw": {"value": 8}}]}}',
            "sdb shows signs of failing",
        ),
        (
            '{"smart_status": {"passed": true}, "ata_smart_data": {"self_test": {"status": {"value": 249}}}}',
            "sdb tests itself",
        ),
    ],
)
def test_a_check_waits_for_the_drives(drive: str, words: str) -> None:
    _, layout = large_raid5()
    add(layout, f"[]\ntools/smartctl/sdb={drive}")
    (check,) = [step for step in finding(layout, "ure").steps if "echo check" in step.commands[0]]
    assert check.waits == [words]


@pytest.mark.parametrize(("state", "waits"), [("Optl", False), ("Rbld", True), ("Dgrd", True), ("Init", True)])
def test_settings_of_a_raid_unit_wait_for_its_rebuild(state: str, waits: bool) -> None:
    layout = load("raid-megaraid")
    text = layout.files["tools/storcli/all"].decode().replace('"Optl"', f'"{state}"').replace("RWBD", "RWTD")
    layout.files["tools/storcli/all"] = text.encode()
    (switch,) = finding(layout, "write-cache").steps
    assert bool(switch.waits) is waits


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("0 100 raid raid5_ls 4 AAAA 100/100 idle 0 0 -", []),
        ("0 100 raid raid5_ls 4 AADA 100/100 idle 0 0 -", ["dm-0 is degraded"]),
        ("0 100 raid raid5_ls 4 AAaA 10/100 recover 0 0 -", ["dm-0 is being rebuilt"]),
        ("0 100 raid raid5_ls 4 AAAA 10/100 check 0 0 -", ["dm-0 is being checked"]),
        (None, ["dm-0 is in a state that is not known"]),
    ],
)
def test_lvms_own_raid_has_a_state_too(status: str | None, words: list[str]) -> None:
    layout = load("sata-ssd")
    add(
        layout,
        "holder sda1 dm-0\ndevice sys/devices/virtual/block/dm-0\ndev=253:0\nsize=100\ndm/name=vg-lv\n"
        "dm/uuid=LVM-1\nslaves/sda1 -> /sys/class/block/sda1\n[]\n"
        "tools/dmsetup-table/dm-0=0 100 raid raid5_ls 3 128 region_size 1024 4 - 8:1 - 8:1 - 8:1 - 8:1",
    )
    if status is not None:
        add(layout, f"[]\ntools/dmsetup-status/dm-0={status}")
    queue = next(path for path in layout.files if path.endswith("sda/queue/nr_requests"))
    layout.files[queue] = b"4\n"
    assert {tuple(step.waits) for step in finding(layout, "queue-requests").steps} == {tuple(words)}
    degraded = ("md-degraded", "dm-0") in {(one.rule, one.object) for one in diagnosis(layout).findings}
    assert degraded is ("AADA" in (status or ""))


@pytest.mark.parametrize(
    ("operation", "options", "words"),
    [
        ("none", "", []),
        ("balance", "", ["fs:/home is being restructured"]),
        ("device replace", "", ["fs:/home is being restructured"]),
        ("none", ",degraded", ["fs:/home is degraded"]),
    ],
)
def test_a_scrub_of_btrfs_waits_for_its_balance(operation: str, options: str, words: list[str]) -> None:
    layout = load("bcache")
    add(layout, f"[sys/fs/btrfs/9c0ffee0-1111-2222-3333-444455556666]\nexclusive_operation={operation}")
    mounts = layout.files["proc/self/mountinfo"].replace(b"rw,ssd=off", b"rw,ssd=off" + options.encode())
    layout.files["proc/self/mountinfo"] = mounts
    (scrub,) = [step for step in finding(layout, "file-system-errors").steps if "scrub" in step.commands[0]]
    assert scrub.waits == words


def test_a_file_system_is_never_checked_while_it_is_mounted() -> None:
    layout = add(load("sata-ssd"), "[]\nsys/fs/ext4/sda1/errors_count=3")
    assert finding(layout, "file-system-errors").steps
    assert not any("fsck" in line for line in lines_of(layout))


def test_a_superblock_with_errors_is_not_written() -> None:
    shape = Shape(disks=4, fs="ext4")
    layout = add(healthy(shape), "[]\n" + "\n".join(geometry(shape, 4096, 4096 * shape.data_disks)))
    (step,) = finding(layout, "stripe-geometry").steps
    assert step.commands[0].startswith("tune2fs ")
    assert not step.waits
    add(layout, f"[]\nsys/fs/ext4/{shape.top}/errors_count=2")
    (step,) = finding(layout, "stripe-geometry").steps
    assert step.waits == ["fs:/data has counted errors"]


@pytest.mark.parametrize(("metadata", "found"), [("external:imsm", False), ("external:/md127/0", True), ("1.2", True)])
def test_a_container_of_arrays_is_inactive_by_nature(metadata: str, found: bool) -> None:
    shape = Shape(disks=4)
    layout = add(healthy(shape), f"[{shape.array}]\nmd/array_state=inactive\nmd/metadata_version={metadata}")
    assert (("md-degraded", "md0") in {(one.rule, one.object) for one in diagnosis(layout).findings}) is found
    add(layout, f"[{shape.folder(0)}]\nqueue/nr_requests=16")
    assert any("nr_requests" in line for line in lines_of(layout)) is not found


def test_each_array_state_is_known_by_name() -> None:
    """A state that only a newer kernel has delays every step but reading."""
    shape, layout = large_raid5()
    add(layout, f"[{shape.array}]\nmd/array_state=half-asleep")
    assert not [line for line in lines_of(layout) if not LOOKS.match(line)]
