"""Runs a workload on a target and returns a record.

`resolve` finds the workload, `targets` interprets the name of a target and opens it, `runner` runs loads on an open
target, `load` is one load from start to end; `knee`, `quick` and `assess` are made of them. Nothing here prints: a
`Watch` receives the events.
"""
