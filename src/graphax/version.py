"""The version of both packages; releases are tagged with it."""

__version__ = "0.1.0"
