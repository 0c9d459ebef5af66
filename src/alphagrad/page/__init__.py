"""Graphs and orders to look at: a page of its own, and drawings for papers."""
