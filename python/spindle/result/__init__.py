"""The result of a run: one record that holds what was asked, what came out and whether it can be believed.

`record` is the shape, `rules` give the verdicts, `schema` its JSON Schema, `units` the words for quantities.
"""
