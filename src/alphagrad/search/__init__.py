"""Search for elimination orders, and for proofs that there is no better one."""
