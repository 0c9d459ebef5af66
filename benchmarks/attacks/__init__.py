"""Attacks on the library, one module for each area; `benchmarks/adversary.py` runs them."""
