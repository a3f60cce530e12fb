"""A document as a file: HTML, Markdown, CSV, text, or its charts as a picture."""
