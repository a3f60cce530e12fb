"""The cheapest drives and array that meet a need: requirements, candidates, nets, races, the answer.

`docs/explanation/design.md` has the formulas with their sources and measured errors.
"""
