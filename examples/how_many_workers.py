"""How many workers does a database need on an array? One run for each number, as a table and a chart.

    python examples/how_many_workers.py [TARGET]

Without TARGET it is a modelled machine; any file or device is read the same way.
"""

import sys

import spindle

target = sys.argv[1] if len(sys.argv) > 1 else "six-sata-f2"
swept = spindle.sweep("randomio", target, workers=[1, 4, 16, 64], write_fraction=0, fsync_fraction=0, seconds=10)

print(f"{'workers':>8} {'IOPS':>8} {'p99':>10}")
for row, result in zip(swept, swept.results, strict=True):
    print(f"{row['workers']:>8} {result.iops:>8.0f} {result.read.p99!s:>10}")

swept.plot("iops").save("workers.svg", force=True)
print("workers.svg has the chart")
