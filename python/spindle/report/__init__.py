"""Pages, charts and documents for people. Nothing is measured or judged here."""
