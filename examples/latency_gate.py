"""A gate for continuous integration: exit with 1 if reads are slower than a bound, or if the result cannot be trusted.

python examples/latency_gate.py [TARGET] [MILLISECONDS]
"""

import sys

import spindle

target = sys.argv[1] if len(sys.argv) > 1 else "one-nvme"
bound_ms = float(sys.argv[2]) if len(sys.argv) > 2 else 2.0

try:
    result = spindle.run("randomio", target, write_fraction=0, fsync_fraction=0, workers=8, seconds=10)
except spindle.Error as error:  # every error of Spindle, one line
    sys.exit(f"{target}: {error}")

if result.level == "invalid":
    sys.exit("\n".join(f"{verdict.check}: {verdict.evidence}" for verdict in result.verdicts))
print(f"{target}: p99 of reads {result.read.p99}, {result.iops:.0f} IOPS")
if result.read.p99.ms > bound_ms:
    sys.exit(f"slower than {bound_ms} ms")
