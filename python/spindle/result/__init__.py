"""The result of a run: one record with the request, the figures, and the verdicts on them.

`record` has the types, `rules` gives the verdicts, `document` reads and writes records and has their JSON Schema.
"""
