"""Does a controller read a full stripe for a single block? How its readers would find out."""

from experiment import ARGUMENTS, Experiment, array, drives, run

MACHINE = (
    '[controller]\nmodel = "9550SX"\n' + array("raid5", "", "64KiB", type="controller") + drives("HDS725050KLA360", 6)
)
STRIPE = "320KiB"
READERS = (1, 2, 4, 8, 16, 32)


def main() -> None:
    """Random reads of one block against reads of a full stripe, by the number of readers."""
    given = ARGUMENTS.parse_args()
    columns = ("one block a request", "a full stripe a request", "ratio")
    found = Experiment(
        "RAID5 of 6 on a 9550SX, random reads: requests per second",
        "readers", "Requests per second (1/s)", columns, shown="{:.1f}".format, drawn=columns[:2],
    )  # fmt: skip
    for readers in READERS:
        block, stripe = (
            run(MACHINE, kernel=given.kernel, seconds=30, workers=readers, size=size, align=align).iops
            for size, align in (("4KiB", "4KiB"), (STRIPE, STRIPE))
        )
        found.add(str(readers), block, stripe, block / stripe)
    found.finish(given.chart)


if __name__ == "__main__":
    main()
