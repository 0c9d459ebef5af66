"""Elimination orders for graphax: the tasks they are measured on."""
