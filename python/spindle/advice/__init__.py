"""Arrays for drives that are already there: the alternatives with their figures, the choice, and the setup script."""
