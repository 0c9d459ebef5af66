"""Proofs that no elimination order is better."""
