"""Independent simulations on this computer, in worker processes, or on a cluster of Dask (docs/reference/cluster.md).

simulation.py   one simulation as plain data, and its result    chunks.py   how many go to a worker at a time
choice.py       where the caller wants them: checks addresses   kept.py     finished ones, for a run that goes on
place.py        the interface, and this computer                workers.py  the workers of Dask
sharing.py      begins and ends a place                         preload.py   signals of worker processes
"""
