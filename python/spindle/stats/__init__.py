"""What the numbers of runs allow one to say.

Plain numbers and records in, findings with their uncertainty out; nothing here reads files, stores or machines.
Methods, sources and how they were checked: docs/statistics.md. Import from the modules: names and values of metrics
(`metric`) are wanted by the store, which starts without NumPy; SciPy is imported where it is used.
"""
