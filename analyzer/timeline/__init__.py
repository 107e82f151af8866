"""Clocks, alignment and order: readings become intervals, and `before` may answer "not known"."""
