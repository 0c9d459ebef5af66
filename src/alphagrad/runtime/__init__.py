"""Orders that are fast: a model of what kernels take on this machine, and a search that ends with the clock."""
