"""Charts of a report, one module a kind: each makes a `Chart` of the runs it is given, or nothing without its data.

One Vega-Lite specification serves every format. It names colours by role (`theme`): real colours in pictures, CSS
variables in HTML, so that the reader's light or dark setting and print decide. Colour is never the only distinction:
curves differ by dash and mark as well.
"""
