"""The functions that elimination orders are measured on."""
