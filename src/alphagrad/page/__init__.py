"""Views of graphs and orders: a self-contained page, and drawings for papers."""
