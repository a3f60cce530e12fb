"""Carrying out: a workload is put on a target, and a record comes back.

`resolve` finds the workload, `targets` says what the name of a target means and opens it, `bench` runs loads on an open
target, `load` is one load from start to end; `knee`, `quick` and `assess` are made of them. Nothing here prints: a
`Watch` hears what happens.
"""
