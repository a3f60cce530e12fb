"""A report as data: what is said, in which order, in no format yet.

`entry` -> records as they were found; `trial` -> runs, gathered into cases by what tells them apart; `build` ->
sections of words, sheets and charts. `report.render` makes a file of it.
"""
