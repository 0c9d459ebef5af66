"""The search for elimination orders, and the best known orders."""
