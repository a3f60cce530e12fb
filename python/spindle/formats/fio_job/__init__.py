"""Conversion of fio's job files to native workloads.

    convert(path, target=None) -> Conversion     # jobs, phases, files, findings
    arguments.parsed(words, ...), .sections_of   # fio's command line
    conversion.runnable() -> Conversion          # or JobFileRefused, a line for each reason
    toml_of(conversion) -> str

Source of truth: fio's HOWTO and the behaviour of fio 3.33. `options.OPTIONS` defines the conversion of each option.
"""

from .convert import Conversion, Phase, convert, convert_sections, convert_text
from .document import as_json, body_of, command_line, toml_of
from .finding import JobFileRefused, JobFinding, Level, SourceLine
from .report import logged_jobs, shape_of

__all__ = [
    "Conversion",
    "JobFileRefused",
    "JobFinding",
    "Level",
    "Phase",
    "SourceLine",
    "as_json",
    "body_of",
    "command_line",
    "convert",
    "convert_sections",
    "convert_text",
    "logged_jobs",
    "shape_of",
    "toml_of",
]
