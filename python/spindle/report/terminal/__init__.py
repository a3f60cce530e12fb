"""Pages for the terminal: tables in the field's shapes, verdicts, the assessment, a live line.

A page is a list of lines made from a record and a `Style` (width and colour of the output).
"""
