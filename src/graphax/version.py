"""The version of both packages. Releases are tagged with it."""

__version__ = "0.1.0"
