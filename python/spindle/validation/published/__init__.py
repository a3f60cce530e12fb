"""Published measurements of real arrays, held against modelled ones."""
