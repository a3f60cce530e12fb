"""Searches for the best point of a space of settings, by noisy trials. Pure: arrays in, points out.

See docs/explanation/tuning.md.

Public signatures::

    # space.py
    class Space(axes, ignores, allowed)                 # points are tuples of level numbers
    # strategies.py: asked with all trials so far
    class Strategy(Protocol): ask(trials, taken) -> Point
    class Grid, Random, ExpectedImprovement             # the last one of a Gaussian process
    # process.py
    def fitted(space, points, values, blocks) -> Process    # .at(points) -> mean, standard error
    # choice.py
    def has_two_modes(values, others) -> bool
    # curves.py
    def influences(process, at) -> list[Influence]
"""
