"""Published measurements of real arrays, compared with modelled ones."""
