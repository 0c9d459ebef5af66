"""What compiling programs takes, estimated from their sizes: seconds on a core of 2023."""

# For any program, and for each equation or instruction of it.
_XLA_STARTS, _XLA_EQUATION = 0.03, 1.2e-3
_KERNEL_STARTS, _KERNEL_INSTRUCTION = 0.02, 60e-6


def compiling_xla(equations: float) -> float:
    return _XLA_STARTS + _XLA_EQUATION * equations


def compiling_kernel(instructions: int) -> float:
    return _KERNEL_STARTS + _KERNEL_INSTRUCTION * instructions
