"""Spindle: measures, explains, tunes and predicts the performance of storage on Linux."""
