"""The probability that an array loses data: a Markov chain, a Monte Carlo simulation, the closed forms of textbooks.

`docs/explanation/reliability.md` has the model with its formulas, sources and validation.
"""
