"""The changes of the kernel's source. Without them two runs would differ, processes would be left behind, a request
would cost twice the time, and no kernel would boot on a CPU with AMX.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from .errors import LabError
from .files import place

_TIME = "arch/um/kernel/time.c"
_REGISTERS = "arch/x86/um/os-Linux/registers.c"
_PARTS = {"lab_clock.h": "arch/um/kernel", "lab_xstate.h": "arch/x86/um/os-Linux"}
"""Files in `image` that the source includes, and their folders."""
_INTERNAL = "arch/um/include/linux/time-internal.h"
_VIRTIO = "arch/um/drivers/virtio_uml.c"
_STUB = "arch/um/os-Linux/skas/process.c"
_TRACED = "PTRACE_O_TRACESYSGOOD"

_SPLITMIX = """\
	/* The same numbers in every run (SplitMix64; Steele, Lea & Flood, OOPSLA 2014). */
	static unsigned long state;
	unsigned char *bytes = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		unsigned long z = state += 0x9E3779B97F4A7C15UL;

		z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9UL;
		z = (z ^ (z >> 27)) * 0x94D049BB133111EBUL;
		bytes[i] = z ^ (z >> 31);
	}
	return len;
"""

_HANDLER = "static void vu_req_interrupt_comm_handler("
_INTERRUPT = """\
static void lab_interrupt_fn(struct time_travel_event *event)
{
	generic_handle_irq(container_of(event, struct virtio_uml_device,
					lab_event)->irq);
}

void lab_interrupt(u16 device, u16 ring)
{
	struct virtio_uml_device *vu_dev = lab_devices[device];

	vu_dev->vq_irq_vq_map |= BIT_ULL(ring);
	vu_dev->lab_event.fn = lab_interrupt_fn;
	time_travel_add_irq_event(&vu_dev->lab_event);
}

"""

# The driver of a console waits for its output to be taken, so its kicks are reported at once.
_KICK = """\
		lab_kick(vu_dev->pdev->id, vq->index,
			virtio16_to_cpu(vq->vdev, virtqueue_get_vring(vq)->avail->idx),
			vq->vdev->id.device != VIRTIO_ID_BLOCK);
		return true;
	}
"""

_DECLARED = """\
void time_travel_sleep(void);
void lab_kick(u16 device, u16 ring, u16 available, bool at_once);
void lab_speak_to(u16 device);
void lab_interrupt(u16 device, u16 ring);
"""


@dataclass(frozen=True)
class Edit:
    """One change of a file of the source: `old`, and what follows it up to `until`, becomes `new`."""

    file: str
    old: str
    new: str = ""
    until: str = ""

    def apply(self, tree: Path) -> None:
        """Change the source. Raises LabError."""
        path = tree / self.file
        before, old, rest = path.read_text().partition(self.old)
        _, until, after = rest.partition(self.until) if self.until else ("", "", rest)
        if not old or until != self.until:
            raise LabError(f"{self.file}: the kernel's source is not as the lab knows it")
        place(path, (before + self.new + until + after).encode())


def edits(series: str, hz: int) -> list[Edit]:
    """All changes of files of a series of kernels."""
    return [
        # User Mode Linux has 100, and no option for it.
        Edit("arch/um/Kconfig", "config HZ\n\tint\n\tdefault 100\n", f"config HZ\n\tint\n\tdefault {hz}\n"),
        # UUIDs, hash seeds and random delays come from here.
        Edit("arch/um/os-Linux/util.c", "\treturn getrandom(buf, len, flags);\n", _SPLITMIX),
        # Processes in the lab must die with it: without its tracer their system calls would be the host's.
        Edit(_STUB, f"(void *) {_TRACED})", f"(void *) ({_TRACED} | PTRACE_O_EXITKILL))"),
        *_XSTATE_EDITS,
        *_CLOCK_EDITS,
        *_EDITS_OF_SERIES[series],
    ]


_EDITS_OF_SERIES = {
    # Processes are made in two ways.
    "6.1": [Edit(_STUB, f"(void *){_TRACED})", f"(void *)({_TRACED} | PTRACE_O_EXITKILL))")],
    # Messages to all that share the clock, which the lab's calendar does not have.
    "6.12": [
        Edit(_STUB, "\t\ttime_travel_print_bc_msg();\n\n"),
        Edit(_TIME, "static struct kobject *bc_time_kobject;\n", until="#endif"),
    ],
}


_XSTATE_EDITS = [
    Edit(_REGISTERS, "int restore_i387_registers(", '#include "lab_xstate.h"\n\nint restore_i387_registers('),
    Edit(
        _REGISTERS,
        "\tstruct iovec iov;\n\tif (have_xstate_support) {\n",
        "\tif (have_xstate_support) {\n\t\tstruct iovec iov = lab_whole_xstate(fp_regs);\n\n",
        "\t\tif (ptrace(PTRACE_SETREGSET,",
    ),
    Edit(_REGISTERS, "\tfree(fp_regs);\n", "\tfree(fp_regs);\n\tlab_find_xstate(pid);\n"),
]

_CLOCK_EDITS = [
    Edit(
        _TIME,
        "static bool time_travel_ext_prev_request_valid;",
        "static unsigned long long time_travel_ext_free_until;\n",
        "\nstatic void time_travel_set_time(",
    ),
    Edit(
        _TIME,
        "enum time_travel_message_handling {",
        '#include "lab_clock.h"\n\n',
        "static void __time_travel_update_time(",
    ),
    Edit(_TIME, "\t\ttime_travel_ext_wait(idle);", "\t\ttime_travel_ext_wait(ns);"),
    Edit(_TIME, "\ttime_travel_ext_update_request(tmp->time);\n"),
    Edit(_TIME, "\t\te = time_travel_first_event();\n\t\tif (e)\n\t\t\ttime_travel_ext_update_request(e->time);\n"),
    Edit(_TIME, "\ttime_travel_ext_get_time();\n"),
    Edit(
        _TIME, "\tunsigned long long next = S64_MAX;\n", "\tunsigned long long next = S64_MAX;\n\n\tlab_readings = 0;\n"
    ),
    Edit(_TIME, "time_travel_update_time_rel(TIMER_MULTIPLIER)", "time_travel_update_time_rel(lab_reading())"),
    *[Edit(_TIME, f"{clock} / TIMER_MULTIPLIER;", f"{clock} / lab_reading_ns;") for clock in ("time", "os_nsecs()")],
    Edit(_TIME, "NSEC_PER_SEC/TIMER_MULTIPLIER", "NSEC_PER_SEC / lab_reading_ns"),
    Edit(_TIME, "\ttime_travel_ext_req(UM_TIMETRAVEL_START, id);\n", "\tlab_start(id);\n"),
    Edit(_TIME, "\t\ttime_travel_start = time_travel_ext_req(", "\t\tbreak;\n", "\tcase TT_MODE_INFCPU:"),
    Edit(_INTERNAL, "void time_travel_sleep(void);\n", _DECLARED),
    Edit(_INTERNAL, "void __time_travel_propagate_time(void);\n", until="void time_travel_add_irq_event("),
    Edit(
        _VIRTIO,
        "#include <linux/virtio_config.h>\n",
        "#include <linux/virtio_config.h>\n#include <linux/virtio_ids.h>\n",
    ),
    Edit(
        _VIRTIO,
        "\tint recv_rc;\n};\n",
        "\tint recv_rc;\n\tstruct time_travel_event lab_event;\n};\n\n"
        "static struct virtio_uml_device *lab_devices[256];\n",
    ),
    Edit(_VIRTIO, "\t/*\n\t * In virtio time-travel mode, we're", until="\trc = vhost_user_recv_header(fd, msg);\n\n"),
    Edit(
        _VIRTIO,
        "\trc = full_sendmsg_fds(vu_dev->sock,",
        "\tlab_speak_to(vu_dev->pdev->id);\n\trc = full_sendmsg_fds(vu_dev->sock,",
    ),
    Edit(
        _VIRTIO, "static void vu_req_interrupt_comm_handler(", _INTERRUPT + "static void vu_req_interrupt_comm_handler("
    ),
    *[Edit(_VIRTIO, "\ttime_travel_propagate_time();\n")] * 3,
    Edit(
        _VIRTIO,
        "\t\treturn vhost_user_set_vring_state(vu_dev, VHOST_USER_VRING_KICK,",
        _KICK,
        "\n\tdo {\n\t\trc = os_write_file(info->kick_fd",
    ),
    Edit(_VIRTIO, "\tvu_dev->req_fd = -1;\n", "\tvu_dev->req_fd = -1;\n\tlab_devices[pdev->id] = vu_dev;\n"),
]


def apply(tree: Path, series: str, hz: int) -> None:
    """Change a source of this series. Raises LabError."""
    for edit in edits(series, hz):
        edit.apply(tree)
    for name, folder in _PARTS.items():
        place(tree / folder / name, _part(name))


def digested(series: str, hz: int) -> bytes:
    """Bytes that differ if the changes do."""
    return repr(edits(series, hz)).encode() + b"".join(map(_part, _PARTS))


def _part(name: str) -> bytes:
    return files(__package__).joinpath("image", name).read_bytes()
