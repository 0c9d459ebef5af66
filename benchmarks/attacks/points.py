"""Points at which derivatives may go wrong: whole numbers, zeros, infinities, neighbours of jumps, and random ones."""

import numpy as np


def special_points(rng: np.random.Generator, count: int, dtype: type) -> np.ndarray:
    """``count`` numbers, most of them special in some way."""
    kinds = [_whole, _edges, _halves, _turns, _random, _wide, _neighbours]
    shares = rng.multinomial(count, [0.3, 0.14, 0.12, 0.08, 0.12, 0.12, 0.12])
    with np.errstate(all="ignore"):
        points = np.concatenate([kind(rng, n) for kind, n in zip(kinds, shares, strict=True)]).astype(dtype)
    return rng.permutation(points)


def _whole(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(1, 2001, count) * rng.choice([1.0, 1.0, 1.0, -1.0], count)


def _edges(rng: np.random.Generator, count: int) -> np.ndarray:
    edges = [0.0, -0.0, 1e-45, -1e-45, 1e-40, 1e-38, -1e-38, 2.3e-308, 5e-324, 1e-30, -1e-30, 1e-10, 1e30, -1e30]
    edges += [1e19, 3e38, 1e300, -1e300, np.inf, -np.inf, np.nan, 3e9, -3e9, 2.0**31, 2.0**31 - 1, -(2.0**31), 2.0**63]
    edges += [2.0**24 + 1, 2.0**53, 256.0, -129.0, 65536.0, 1.0, -1.0]
    return rng.choice(edges, count)


def _halves(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(-40, 41, count) / rng.choice([2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 49.0], count)


def _turns(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.integers(-50, 51, count) * np.pi / rng.choice([1.0, 2.0, 4.0], count)


def _random(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.normal(size=count) * 3


def _wide(rng: np.random.Generator, count: int) -> np.ndarray:
    return rng.choice([-1.0, 1.0], count) * 10.0 ** rng.uniform(-30, 30, count)


def _neighbours(rng: np.random.Generator, count: int) -> np.ndarray:
    # Neighbours in single precision are far apart in double precision; both are near a jump.
    jumps = rng.choice([0.0, 1.0, -1.0, 2.0, 0.5, 3.0, 10.0, 49.0, np.pi], count)
    single = np.nextafter(jumps.astype(np.float32), np.float32(np.inf) * rng.choice([-1, 1], count).astype(np.float32))
    double = np.nextafter(jumps, np.inf * rng.choice([-1, 1], count))
    return np.where(rng.random(count) < 0.5, single.astype(float), double)
