"""Fit the polynomials of `graphax.native.coefficients` again.

    python benchmarks/coefficients.py

Each polynomial is interpolated at Chebyshev nodes in extended precision, which is close to the best polynomial of its
degree. It is printed with its largest error relative to the function that it is part of. This needs a platform whose
long double has a mantissa of 64 bits.
"""

import numpy as np

LONG = np.longdouble
PI = 4 * np.arctan(LONG(1))


def erf(x):
    """The error function, by a series of positive terms."""
    term = total = x
    for n in range(1, 120):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return 2 / np.sqrt(PI) * np.exp(-x * x) * total


def scaled_erfc(a):
    """exp(a²)·erfc(a) for a ≥ 0: directly where that is accurate enough, otherwise by a continued fraction."""
    near = np.minimum(a, LONG(1.5))
    direct = (1 - erf(near)) * np.exp(near * near)
    far = np.maximum(a, LONG(1.5))
    tail = np.zeros_like(far)
    for n in range(400, 0, -1):
        tail = LONG(n) / 2 / (far + tail)
    return np.where(a < 1.5, direct, 1 / np.sqrt(PI) / (far + tail))


def _erfc_polynomial(k):
    def function(q):
        a = k * (1 + q) / (1 - q)
        return scaled_erfc(a) * (1 + 2 * a)

    return function


def _exp_rest(r):
    """(exp(r) - 1 - r) / r², which a series gives near zero."""
    safe = np.where(np.abs(r) < 1e-5, LONG(1), r)
    return np.where(np.abs(r) < 1e-5, LONG(0.5) + r / 6 + r**2 / 24, (np.expm1(safe) - safe) / safe**2)


def _root(function):
    return lambda z: function(np.sqrt(z))


def fit(function, low, high, degree):
    """Coefficients, lowest first, of the polynomial through Chebyshev nodes of an interval."""
    low, high = LONG(low), LONG(high)
    count = degree + 1
    nodes = (low + high) / 2 + (high - low) / 2 * np.cos(PI * (2 * np.arange(count, dtype=LONG) + 1) / (2 * count))
    divided = np.array(function(nodes), LONG)
    for order in range(1, count):
        divided[order:] = (divided[order:] - divided[order - 1 : -1]) / (nodes[order:] - nodes[: count - order])
    result = np.zeros(count, LONG)
    for node, value in zip(nodes[::-1], divided[::-1], strict=True):
        result[1:], result[0] = result[:-1] - node * result[1:], -node * result[0] + value
    return result


def error(function, weight, low, high, coefficients, dtype):
    """The largest error, times the weight, with coefficients rounded to ``dtype``."""
    points = np.linspace(LONG(low) + LONG(1e-4), LONG(high), 4001)
    values = np.zeros_like(points)
    for c in coefficients[::-1]:
        values = values * points + LONG(dtype(c))
    return float(np.max(np.abs((values - function(points)) * weight(points))))


QUARTER = PI / 4 * LONG("1.002")
LN2 = np.log(LONG(2)) / 2 * LONG("1.001")
ATANH = ((np.sqrt(LONG(2)) - 1) / (np.sqrt(LONG(2)) + 1)) ** 2 * LONG("1.01")

# name: function, weight that makes its error relative to the result, interval, degrees in single and double
FITS = {
    "SIN": (_root(lambda r: (np.sin(r) / r - 1) / r**2), lambda z: z, 0, QUARTER**2, (2, 6)),
    "COS": (_root(lambda r: (np.cos(r) - 1 + r**2 / 2) / r**4), lambda z: z**2, 0, QUARTER**2, (2, 6)),
    "EXP": (_exp_rest, lambda r: r**2, -LN2, LN2, (4, 10)),
    "LOG": (_root(lambda s: 2 * (np.arctanh(s) / s - 1) / s**2), lambda z: z, 0, ATANH, (2, 7)),
    "ATAN": (_root(lambda t: (np.arctan(t) / t - 1) / t**2), lambda z: z, 0, 1, (8, 20)),
    "ERF": (_root(lambda x: erf(x) / x - 1), lambda z: 1, 0, 1, (6, 12)),
    "ERFC": (_erfc_polynomial(LONG(2)), lambda q: 1, -0.61, 0.87, (9, 23)),
}


def main():
    for name, (function, weight, low, high, degrees) in FITS.items():
        for dtype, degree in zip((np.float32, np.float64), degrees, strict=True):
            found = fit(function, low, high, degree)
            ulps = error(function, weight, low, high, found, dtype) / np.finfo(dtype).eps
            print(f"{name} {dtype.__name__}  # within {ulps:.2g} eps")
            print("    " + ", ".join(repr(float(dtype(c))) for c in found))


if __name__ == "__main__":
    main()
