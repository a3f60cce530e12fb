"""The functions that `import spindle` offers and that the command line calls, one module for each subject.

`spindle.__init__` imports a module when one of its names is used.
"""
