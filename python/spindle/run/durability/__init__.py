"""The durability test: writers with a journal elsewhere, the journal's receiver, and the check after a crash."""
