"""Why are reads of an offset layout poor until the chunk exceeds one or two cylinders?"""

from experiment import ARGUMENTS, Experiment, array, drives, stream

import spindle

MODEL = "HD321KJ"
DRIVES = drives(MODEL, 4, region="4GB-8GB")
CHUNKS = ("64KiB", "256KiB", "1MiB", "2MiB", "4MiB", "8MiB", "16MiB")


def main() -> None:
    """Streaming reads of offset, near and far arrays, as multiples of one drive, by chunk."""
    given = ARGUMENTS.parse_args()
    columns = ("offset=2", "near=2", "far=2", "raid0")
    found = Experiment(
        f"Four {MODEL}: one buffered stream of reads, read-ahead 32 MiB, multiples of one drive",
        "chunk", "Multiple of one drive (x)", columns,
    )  # fmt: skip
    queue = '[queue]\nread_ahead = "32MiB"\n'
    one = stream(queue + drives(MODEL, region="4GB-8GB"), kernel=given.kernel)
    for chunk in CHUNKS:
        layouts = [array("raid10", name, chunk) for name in ("o2", "n2", "f2")] + [array("raid0", "", chunk)]
        found.add(chunk, *(stream(queue + of + DRIVES, kernel=given.kernel) / one for of in layouts))
    found.finish(given.chart)
    drive = spindle.drive(MODEL)
    print(f"a cylinder of {MODEL} has {drive.capacity / drive.cylinders / 2**20:.1f} MiB on average")


if __name__ == "__main__":
    main()
