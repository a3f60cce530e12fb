"""Carrying out: a workload is put on a target, and a record comes back.

`resolve` finds the workload, `bench` holds an open target and runs loads on it, `load` is one load from start to end;
`knee`, `quick` and `assess` are made of them. Nothing here prints: a `Watch` hears what happens.
"""
