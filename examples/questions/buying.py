"""Compares more drives, faster drives, a larger chunk and another level, before they are bought."""

from experiment import ARGUMENTS, Experiment, array, drives, run

SATA, FAST, SSD = "HDS725050KLA360", "ST3600057SS", "860-EVO-1TB"
SERVERS = {
    "raid5, 6 drives, 64 KiB": array("raid5", "", "64KiB") + drives(SATA, 6),
    "raid5, 1 MiB chunk": array("raid5", "", "1MiB") + drives(SATA, 6),
    "raid10 far, 6 drives": array("raid10", "f2", "64KiB") + drives(SATA, 6),
    "raid10 far, 1 MiB chunk": array("raid10", "f2", "1MiB") + drives(SATA, 6),
    "raid10 far, 10 drives": array("raid10", "f2", "1MiB") + drives(SATA, 10),
    "raid10 far, 6 of 15 000 rpm": array("raid10", "f2", "1MiB") + drives(FAST, 6),
    "raid1 of two SSDs": array("raid1") + drives(SSD, 2, state="used"),
}


def main() -> None:
    """The database load (oltp, 48 outstanding) on each server."""
    given = ARGUMENTS.parse_args()
    columns = ("IOPS", "mean read (ms)", "99th percentile (ms)")
    found = Experiment(
        "oltp: 1 to 512 KiB, 26 KiB on average, 10 % writes, 48 outstanding", "server", "IOPS (1/s)", columns,
        shown="{:.1f}".format, drawn=columns[:1], bars=True,
    )  # fmt: skip
    for name, machine in SERVERS.items():
        result = run(machine, "oltp", kernel=given.kernel, seconds=30, workers=48)
        found.add(name, result.iops, float(result.read.mean) / 1e6, float(result.read.p99) / 1e6)
    found.finish(given.chart)


if __name__ == "__main__":
    main()
