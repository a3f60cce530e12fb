"""One machine and one load both ways: in the simulator (fast) and under the real kernel in virtual time (exact).

`grids` has the grids: of direct I/O (`points`) and of buffered I/O (`buffered`). `outcomes.measured` runs a point both
ways, `compare.report` runs all and counts goals.
"""
