"""Sphinx: the site of the pages (`make docs`)."""

project = "Spindle"
extensions = ["myst_parser"]
root_doc = "README"
myst_heading_anchors = 4
html_theme = "alabaster"
html_theme_options = {"page_width": "1100px", "sidebar_width": "200px"}
highlight_language = "text"
smartquotes = False  # `--create` is two hyphens
exclude_patterns = ["conf.py"]
# Pages are found from the index and by search; code blocks show output as it is.
suppress_warnings = ["toc.not_included", "misc.highlighting_failure"]
