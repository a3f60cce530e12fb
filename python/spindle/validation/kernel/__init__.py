"""Cases measured with the real Linux kernel, repeated by a runner and compared.

A folder has two tables: `requests.csv` (a load on one drive or an md array) and `elevators.csv` (loads below each
scheduler). `cases` reads their rows into cases.

The seam for runners is `runner.Runner`: `figures(case) -> CaseFigures`, or `NotModelled` with the reason. `fast.Fast`
is the simulator; another runner needs this method, a `name`, and `jobs`, the number of cases at a time.
`compare.report(folder, runner)` repeats all cases with it, `spindle.report.terminal.kernel_cases` prints the report.
"""
