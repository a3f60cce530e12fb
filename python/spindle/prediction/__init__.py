"""Predictions: what a modelled machine should deliver, and the band that its uncertain numbers give."""
