"""Readers of what a GPU inference server leaves behind. Imports nothing from `analyzer`."""
