"""Cases measured with the real Linux kernel, repeated by a runner and compared.

A folder has two tables: `requests.csv` (a load on one drive or an md array) and `elevators.csv` (loads below each
scheduler). `cases` reads their rows into cases.

The seam for runners is `runner.Runner`: `figures(case) -> CaseFigures`, or `NotModelled` with the reason.
`fast.SimulatorRunner` is the simulator, `exact.LabRunner` the lab, in which `steps` makes the machine of a case and
runs its command. `trace` makes figures of requests. `compare.report(folder, runner)` repeats the cases,
`spindle.report.terminal.kernel_cases` prints the report.
"""
