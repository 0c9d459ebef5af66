"""Estimated compile times of programs by size, in seconds on a core of 2023."""

# The fixed part for any program, and the part per equation or instruction.
_XLA_STARTS, _XLA_EQUATION = 0.03, 1.2e-3
_KERNEL_STARTS, _KERNEL_INSTRUCTION = 0.02, 60e-6


def compiling_xla(equations: float) -> float:
    return _XLA_STARTS + _XLA_EQUATION * equations


def compiling_kernel(instructions: int) -> float:
    return _KERNEL_STARTS + _KERNEL_INSTRUCTION * instructions
