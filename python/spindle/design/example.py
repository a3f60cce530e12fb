"""An example of a requirement file."""

EXAMPLE = """\
# The need of a machine. `spindle design` takes this file and one of prices, and finds the cheapest drives and array.
about = "database of a shop, with its nightly backup"
usable = "4TB"                # space for data
survive = 2                   # any two drives may fail

[growth]
capacity = "20%"              # a year
load = "10%"
years = 3

[limits]
bays = 16
budget = 6000                 # in the currency of the prices
watts = 250
yearly_loss = 1e-4            # probability of losing data in a year
rebuild = "72h"               # beside the load

[space]                       # optional: all choices otherwise
chunks = ["64KiB", "256KiB", "1MiB"]
regions = ["100%", "50%"]     # share of each disk that is used, from the outer edge
spares = [0, 1]

[[load]]
name = "queries"
rate = "600 IOPS"             # arrivals are random; latency counts from them
mix = "80/20"                 # reads/writes; any key of a workload may be here: size, pattern ...
size = "8KiB"
p99 = "30ms"                  # of reads and writes each
degraded = { p99 = "60ms" }   # with one drive missing
rebuilding = { p99 = "200ms" }

[[load]]
name = "backup"
period = "night"              # runs with the loads that have no period
pattern = "sequential"
size = "1MiB"
rate_limit = "50 MB/s"
least_throughput = "40 MB/s"
"""
"""Printed by `spindle design` with `example`."""
