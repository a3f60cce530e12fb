"""Why do RAID6 reads jump at 512 KiB, and why do RAID5 and RAID6 writes collapse with the chunk?"""

from experiment import ARGUMENTS, OLD, Experiment, array, drives, stream

MODEL = "HD321KJ"
CHUNKS = ("64KiB", "128KiB", "256KiB", "512KiB", "1MiB", "2MiB", "4MiB")


def main() -> None:
    """Streams on parity arrays, as multiples of one drive, by chunk."""
    given = ARGUMENTS.parse_args()
    host = "" if given.kernel else OLD
    columns = ("raid5 read", "raid6 read", "raid5 write", "raid6 write", "raid5 write, cache x 32")
    title = f"Four {MODEL}: one buffered stream, multiples of one drive"
    found = Experiment(title, "chunk", "Multiple of one drive (x)", columns)
    one = {write: stream(host + drives(MODEL, region="4GB-8GB"), write, kernel=given.kernel) for write in (False, True)}

    def multiple(level: str, chunk: str, write: bool, cache: int = 256) -> float:
        text = host + array(level, "", chunk, stripe_cache_size=cache) + drives(MODEL, 4, region="4GB-8GB")
        return stream(text, write, kernel=given.kernel) / one[write]

    for chunk in CHUNKS:
        found.add(
            chunk,
            *(multiple(level, chunk, False) for level in ("raid5", "raid6")),
            *(multiple(level, chunk, True) for level in ("raid5", "raid6")),
            multiple("raid5", chunk, True, 8192),
        )
    found.finish(given.chart)


if __name__ == "__main__":
    main()
