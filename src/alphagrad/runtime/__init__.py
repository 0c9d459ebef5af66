"""Fast orders: a model of kernel run times on this machine, and a search that ends with measurements."""
