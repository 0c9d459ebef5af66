"""A learned greedy policy: a small network that scores vertices by their surroundings, for graphs of any size."""
