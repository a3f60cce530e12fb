"""Statistics of runs: records and plain numbers in, findings with their uncertainty out.

Nothing here reads files, stores or machines. Methods, sources and validation: docs/explanation/statistics.md. Import
from the modules: the store needs names and values of metrics (`metric`) and starts without NumPy; SciPy is imported
where it is used.
"""
