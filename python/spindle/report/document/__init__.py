"""A report as data, independent of the format.

`entry` -> selected records; `trial` -> runs, grouped into cases by what distinguishes them; `build` ->
sections of words, sheets and charts. `report.render` makes a file of it.
"""
