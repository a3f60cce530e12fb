"""What a person sees: tables in the field's shapes, verdicts, the assessment, a live line. Plain text everywhere.

A page is a list of lines made from a record and a `Style` (width and colour of the place it goes to); nothing is
measured or judged here.
"""
