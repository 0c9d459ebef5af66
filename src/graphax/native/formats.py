"""Floating-point formats, and the constants that elementary functions need."""

import math
from dataclasses import dataclass

INFINITY = math.inf


@dataclass(frozen=True)
class Format:
    """A floating-point format, with constants split into parts so that the first subtraction is exact.

    Attributes:
        mantissa, bias: the bits of the mantissa, and the bias of the exponent.
        ln2, fused_ln2: ln(2) as a part that can be multiplied by a whole number without rounding, and the rest; the
            second is for a fused multiply-add.
        half_pi: π/2 in three parts, for a fused multiply-add.
        pi: π in two parts.
        largest_angle: the largest angle for which `half_pi` is accurate to a few units in the last place.
        smallest: the smallest normal number.
        exp_range: the range where the exponential, or half of it, is neither zero nor infinite.
        saturated: the argument from which on tanh is one.
    """

    mantissa: int
    bias: int
    ln2: tuple[float, float]
    fused_ln2: tuple[float, float]
    half_pi: tuple[float, float, float]
    pi: tuple[float, float]
    largest_angle: float
    smallest: float
    exp_range: tuple[float, float]
    saturated: float

    @property
    def magic(self) -> float:
        """Added to a small number, it leaves the nearest whole number in the lowest bits."""
        return 1.5 * 2.0**self.mantissa


FORMATS = {
    "f32": Format(
        23, 127,
        (0.693138122558593750, 9.0580006144591607e-06), (0.693147182464599609375, -1.904654323148236e-09),
        (1.57079637050628662109375, -4.371138828673793e-08, -1.7151245100058819e-15),
        (3.1415927410125732421875, -8.74227800037248566e-8),
        32768.0, 2.0**-126, (-104.0, 90.0), 10.0,
    ),
    "f64": Format(
        52, 1023,
        (6.93147180369123816490e-01, 1.90821492927058770002e-10), (0.6931471805599453, 2.3190468138462996e-17),
        (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33),
        (3.141592653589793, 1.2246467991473532e-16),
        2.0**28, 2.0**-1022, (-746.0, 711.0), 22.0,
    ),
}  # fmt: skip
