"""One module for each verb, with its `command` and without logic."""
