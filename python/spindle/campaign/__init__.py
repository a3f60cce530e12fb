"""Campaigns: a plan of alternatives, run trial by trial; each result is stored before it counts.

See docs/reference/campaign.md.

Public signatures::

    # source.py, presets.py
    def open_plan(name, assignments=()) -> Plan          # a preset or a TOML file; Usage: one line with file and line

    # cells.py, order.py: pure
    def cells_of(plan) -> list[Cell]
    class Schedule(plan, cells): .trials(values) -> Iterator[Trial]

    # execution.py
    def run(plan, store, watch, ...) -> Outcome;   def resume(campaign, store, watch, ...) -> Outcome

    # outcome.py
    def outcome_of(campaign, store) -> Outcome           # mean, interval, multiples of each cell
"""
