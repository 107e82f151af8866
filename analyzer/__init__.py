"""From artifacts of a GPU inference server to ranked hypotheses. Imports `parsers`, never the other way round."""

__version__ = "0.1.0"
