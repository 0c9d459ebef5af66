"""A learned greedy: a small network that scores vertices by what stands around them, made for graphs of any size."""
