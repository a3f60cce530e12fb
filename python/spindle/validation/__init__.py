"""The models compared with measurements of real systems."""
