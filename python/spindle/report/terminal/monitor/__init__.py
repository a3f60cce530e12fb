"""Output of the monitor: aligned rows for pipes (`rows`), a live view for terminals (`live`, imported by itself, as it
loads Rich), a CSV file and JSON lines (`lines`). Numbers come from `host.monitor`; unknown is `unknown` in text, empty
in CSV and null in JSON.
"""

from spindle.report.terminal.monitor.lines import CsvFile, JsonLines
from spindle.report.terminal.monitor.rows import Rows, View, summary_lines

__all__ = ["CsvFile", "JsonLines", "Rows", "View", "summary_lines"]
