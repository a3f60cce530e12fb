"""Options that several verbs share, and the conversion of their values."""
