"""Benchmarks of Jacobians: what orders and backends of graphax take, beside JAX's modes and beside peers."""
