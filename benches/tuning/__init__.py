"""Tables of `benches/tune.py`: what a search recommends where the best is known."""
