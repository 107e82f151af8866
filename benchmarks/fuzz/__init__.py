"""Coverage-guided fuzzing of everything that takes bytes from outside. See `python -m benchmarks.fuzz --help`."""
