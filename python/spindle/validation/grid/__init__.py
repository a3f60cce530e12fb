"""One machine and one load both ways: in the simulator (fast) and under the real kernel in virtual time (exact).

`points.points()` is the grid, `both.measured` runs a point both ways, `compare.report` runs all and counts goals.
"""
