"""The search for elimination orders, and the best ones known."""
