"""Benchmarks of Jacobians: orders and backends of graphax, compared with JAX's modes and with peers."""
