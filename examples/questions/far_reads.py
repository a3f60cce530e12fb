"""Why do far-layout reads stop below 4 x on four drives, and where does the dip come from?"""

from experiment import ARGUMENTS, OLD, Experiment, array, drives, stream

MIXED = "".join(
    drives(model, region="4GB-8GB") for model in ("HDT725032VLA360", "HD321KJ", "ST3320620AS", "WD3200AAKS")
)
EQUAL = drives("HD321KJ", 4, region="4GB-8GB")
CHUNKS = ("64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "2MiB")


def main() -> None:
    """Streaming reads of far arrays, as multiples of one drive, by chunk."""
    given = ARGUMENTS.parse_args()
    columns = {
        "cfq": (MIXED, 'scheduler = "cfq"'),
        "deadline": (MIXED, 'scheduler = "deadline"'),
        "noop": (MIXED, 'scheduler = "noop"'),
        "equal drives, cfq": (EQUAL, 'scheduler = "cfq"'),
        "equal, 8 MiB read-ahead": (EQUAL, 'scheduler = "cfq"\nread_ahead = "8MiB"'),
    }
    title = "RAID10 far=2 on four drives: one buffered stream of reads, multiples of one drive"
    found = Experiment(title, "chunk", "Multiple of one drive (x)", list(columns))
    one = stream(OLD + '[queue]\nscheduler = "cfq"\n' + drives("HD321KJ", region="4GB-8GB"))
    for chunk in CHUNKS:
        far = array("raid10", "f2", chunk)
        found.add(chunk, *(stream(f"{OLD}[queue]\n{queue}\n{far}{of}") / one for of, queue in columns.values()))
    found.finish(given.chart)
    slowest = stream(f'{OLD}[queue]\nscheduler = "cfq"\n{drives("HDT725032VLA360", region="4GB-8GB")}') / one
    print(f"the slowest drive alone, HDT725032VLA360: {slowest:.3f}; four times that: {4 * slowest:.2f}")


if __name__ == "__main__":
    main()
