"""Small functions from the fields that SciPy serves: optimisation, dynamics, statistics, geometry, signals, algebra."""

import jax
import jax.numpy as jnp
import numpy as np

NODES, WEIGHTS = np.polynomial.legendre.leggauss(5)


# Optimisation and nonlinear equations.


def rosenbrock_gradient(x):
    """The gradient of the extended Rosenbrock function, whose Jacobian is tridiagonal."""
    inner = x[1:] - x[:-1] ** 2
    return jnp.zeros_like(x).at[:-1].add(-4 * x[:-1] * inner - 2 * (1 - x[:-1])).at[1:].add(2 * inner)


def powell_singular(a, b, c, d):
    """Residuals of Powell's singular function."""
    return a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2


def brown_almost_linear(x):
    """Residuals of Brown's almost linear function: sums of all unknowns, and their product."""
    return jnp.concatenate([x[:-1] + jnp.sum(x) - (x.size + 1), jnp.prod(x)[None] - 1])


def broyden_tridiagonal(x):
    """Residuals of Broyden's tridiagonal function."""
    padded = jnp.pad(x, 1)
    return (3 - 2 * x) * x - padded[:-2] - 2 * padded[2:] + 1


def discrete_boundary_value(u):
    """Residuals of a two-point boundary value problem by finite differences."""
    step = 1 / (u.size + 1)
    times = step * jnp.arange(1, u.size + 1)
    padded = jnp.pad(u, 1)
    return 2 * u - padded[:-2] - padded[2:] + step**2 * (u + times + 1) ** 3 / 2


def bratu_collocation(u, strength):
    """Residuals of Bratu's equation at the nodes of a quadrature."""
    kernel = 0.5 * np.minimum.outer(NODES + 1, NODES + 1) * (1 - np.maximum.outer(NODES, NODES)) * WEIGHTS
    return u - strength * jnp.asarray(kernel, u.dtype) @ jnp.exp(u)


# Dynamics.


def _runge_kutta(field, state, step):
    first = field(state)
    second = field(state + 0.5 * step * first)
    third = field(state + 0.5 * step * second)
    return state + step / 6 * (first + 2 * second + 2 * third + field(state + step * third))


def robertson(a, b, c, slow, fast, middle):
    """Rates of Robertson's stiff reactions, by concentrations and rate constants."""
    forward, backward, consumed = slow * a, middle * b * c, fast * b**2
    return backward - forward, forward - backward - consumed, consumed


def van_der_pol_step(x, v, damping, step):
    """A Runge-Kutta step of Van der Pol's oscillator."""

    def field(state):
        return jnp.stack([state[1], damping * (1 - state[0] ** 2) * state[1] - state[0]])

    return _runge_kutta(field, jnp.stack([x, v]), step)


def lorenz_step(state, sigma, rho, beta):
    """A Runge-Kutta step of Lorenz's attractor, by state and parameters."""

    def field(u):
        x, y, z = u
        return jnp.stack([sigma * (y - x), x * (rho - z) - y, x * y - beta * z])

    return _runge_kutta(field, state, 0.01)


def brusselator(u, v, feed, decay):
    """Rates of the Brusselator with diffusion on a ring."""

    def spread(w):
        return jnp.roll(w, 1) - 2 * w + jnp.roll(w, -1)

    reaction = u * u * v
    return feed - (decay + 1) * u + reaction + 0.1 * spread(u), decay * u - reaction + 0.05 * spread(v)


def seir_step(susceptible, exposed, infected, contact, latency, recovery):
    """Four Euler steps of an epidemic, by groups and rates."""
    removed = 0.0 * infected
    for _ in range(4):
        total = susceptible + exposed + infected + removed
        new = 0.25 * contact * susceptible * infected / total
        ill, well = 0.25 * latency * exposed, 0.25 * recovery * infected
        susceptible, exposed, infected = susceptible - new, exposed + new - ill, infected + ill - well
        removed = removed + well
    return susceptible, exposed, infected, removed


def three_body(x, y, z, masses):
    """Accelerations of three bodies under mutual gravity."""

    def pull(here, there, mass):
        way = there - here
        return mass * way / jnp.sum(way**2) ** 1.5

    return (pull(x, y, masses[1]) + pull(x, z, masses[2]), pull(y, x, masses[0]) + pull(y, z, masses[2]),
            pull(z, x, masses[0]) + pull(z, y, masses[1]))  # fmt: skip


def kepler_position(anomaly, eccentricity, axis):
    """Position on an orbit by its mean anomaly: Kepler's equation by four steps of Newton's method."""
    angle = anomaly + eccentricity * jnp.sin(anomaly)
    for _ in range(4):
        slope = 1 - eccentricity * jnp.cos(angle)
        angle = angle - (angle - eccentricity * jnp.sin(angle) - anomaly) / slope
    return axis * (jnp.cos(angle) - eccentricity), axis * jnp.sqrt(1 - eccentricity**2) * jnp.sin(angle)


# Statistics.


def gaussian_mixture(x, weights, means, scales):
    """Log-likelihoods of points under a mixture of normal distributions."""
    logits = weights - jax.scipy.special.logsumexp(weights)
    z = (x[:, None] - means) / scales
    return jax.scipy.special.logsumexp(logits - 0.5 * z**2 - jnp.log(scales), axis=1)


def logistic_regression(coefficients, intercept, features, penalty):
    """Mean log-loss with a ridge, by coefficients and data."""
    margins = features @ coefficients + intercept
    return jnp.mean(jnp.logaddexp(0.0, -margins)) + penalty * jnp.sum(coefficients**2)


def weibull_moments(shape, scale, t):
    """Survival, hazard and density of the Weibull distribution at several times."""
    z = t / scale
    survival = jnp.exp(-(z**shape))
    hazard = shape / scale * z ** (shape - 1)
    return survival, hazard, hazard * survival


def student_t_loss(residuals, freedom, scale):
    """A robust loss and its weights at residuals."""
    z = (residuals / scale) ** 2 / freedom
    return 0.5 * (freedom + 1) * jnp.sum(jnp.log1p(z)) + residuals.size * jnp.log(scale), (freedom + 1) / (1 + z)


def soft_assignments(points, centres, sharpness):
    """New centres of a soft clustering of points in the plane."""
    distances = jnp.sum((points[:, None] - centres) ** 2, axis=-1)
    shares = jax.nn.softmax(-sharpness * distances, axis=1)
    return shares.T @ points / jnp.sum(shares, axis=0)[:, None]


def gaussian_process(x, y, length, noise):
    """Log-likelihood of observations under a Gaussian process at four points, by a Cholesky factor written out."""
    kernel = jnp.exp(-0.5 * ((x[:, None] - x) / length) ** 2) + noise * jnp.eye(x.size, dtype=x.dtype)
    half, logs = [], jnp.zeros((), x.dtype)
    rows = [[kernel[i, j] for j in range(x.size)] for i in range(x.size)]
    for i in range(x.size):
        pivot = jnp.sqrt(rows[i][i])
        half.append(y[i] / pivot)
        logs = logs + jnp.log(pivot)
        factors = [rows[j][i] / pivot for j in range(i + 1, x.size)]
        y = jnp.stack([y[j] - (factors[j - i - 1] * half[i] if j > i else 0.0) for j in range(x.size)])
        for j in range(i + 1, x.size):
            for k in range(i + 1, x.size):
                rows[j][k] = rows[j][k] - factors[j - i - 1] * factors[k - i - 1]
    return -0.5 * sum(h * h for h in half) - logs


# Geometry.


def rotated(quaternion, axis_angle, point):
    """A point rotated by a quaternion and then by an axis times an angle."""
    w, v = quaternion[0], quaternion[1:]
    turned = point + 2 * jnp.cross(v, jnp.cross(v, point) + w * point) / jnp.sum(quaternion**2)
    angle = jnp.sqrt(jnp.sum(axis_angle**2))
    axis = axis_angle / angle
    return (turned * jnp.cos(angle) + jnp.cross(axis, turned) * jnp.sin(angle)
            + axis * jnp.sum(axis * turned) * (1 - jnp.cos(angle)))  # fmt: skip


def great_circle(latitude, longitude, other_latitude, other_longitude):
    """Distance and bearing between two places on a sphere."""
    east = other_longitude - longitude
    half = jnp.sin((other_latitude - latitude) / 2) ** 2
    half = half + jnp.cos(latitude) * jnp.cos(other_latitude) * jnp.sin(east / 2) ** 2
    north = jnp.cos(latitude) * jnp.sin(other_latitude) - jnp.sin(latitude) * jnp.cos(other_latitude) * jnp.cos(east)
    return 2 * jnp.arcsin(jnp.sqrt(half)), jnp.arctan2(jnp.sin(east) * jnp.cos(other_latitude), north)


def triangle_quality(a, b, c):
    """Area, radius of the inscribed circle, and shape quality of a triangle in space."""
    sides = [jnp.sqrt(jnp.sum((p - q) ** 2)) for p, q in ((a, b), (b, c), (c, a))]
    area = 0.5 * jnp.sqrt(jnp.sum(jnp.cross(b - a, c - a) ** 2))
    around = sides[0] + sides[1] + sides[2]
    return area, 2 * area / around, 4 * 3**0.5 * area / (sides[0] ** 2 + sides[1] ** 2 + sides[2] ** 2)


def ellipse_residuals(centre, axes, tilt, points):
    """Algebraic distances of measured points to an ellipse."""
    turned = points - centre
    along = turned[:, 0] * jnp.cos(tilt) + turned[:, 1] * jnp.sin(tilt)
    across = turned[:, 1] * jnp.cos(tilt) - turned[:, 0] * jnp.sin(tilt)
    return (along / axes[0]) ** 2 + (across / axes[1]) ** 2 - 1


# Signals and interpolation.


def biquad_cascade(signal, first, second):
    """Two recursive filters of second order, one after the other."""
    for b0, b1, b2, a1, a2 in (first, second):
        x1 = x2 = y1 = y2 = 0.0
        filtered = []
        for n in range(signal.size):
            y = b0 * signal[n] + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
            x1, x2, y1, y2 = signal[n], x1, y, y1
            filtered.append(y)
        signal = jnp.stack(filtered)
    return signal


def power_spectrum(signal, decay):
    """Logarithms of the power of a windowed signal at each frequency."""
    n = np.arange(signal.size)
    angles = 2 * np.pi * np.outer(n[: signal.size // 2], n) / signal.size
    windowed = signal * jnp.exp(-decay * jnp.asarray(n, signal.dtype))
    real, imaginary = (jnp.asarray(part, signal.dtype) @ windowed for part in (np.cos(angles), np.sin(angles)))
    return jnp.log(real**2 + imaginary**2 + 1e-6)


def hermite_spline(knots, values, slopes, at):
    """A cubic spline between two knots, with its slope."""
    width = knots[1] - knots[0]
    t = (at - knots[0]) / width
    value = ((1 + 2 * t) * values[0] + t * width * slopes[0]) * (1 - t) ** 2
    value = value + t**2 * ((3 - 2 * t) * values[1] + (t - 1) * width * slopes[1])
    slope = 6 * t * (1 - t) * (values[1] - values[0]) / width
    return value, slope + (1 - t) * (1 - 3 * t) * slopes[0] + t * (3 * t - 2) * slopes[1]


def barycentric_interpolation(nodes, values, at):
    """The polynomial through five points, at a sixth point."""
    differences = nodes[:, None] - nodes + jnp.eye(nodes.size, dtype=nodes.dtype)
    weights = 1 / jnp.prod(differences, axis=1) / (at - nodes)
    return jnp.sum(weights * values) / jnp.sum(weights)


# Linear algebra and special functions.


def gram_schmidt(a, b, c):
    """Three vectors made orthonormal."""
    first = a / jnp.sqrt(jnp.sum(a**2))
    second = b - first * jnp.sum(first * b)
    second = second / jnp.sqrt(jnp.sum(second**2))
    third = c - first * jnp.sum(first * c) - second * jnp.sum(second * c)
    return first, second, third / jnp.sqrt(jnp.sum(third**2))


def symmetric_eigenvalues(diagonal, beside):
    """Eigenvalues of a symmetric matrix of three rows, by angles."""
    mean = jnp.sum(diagonal) / 3
    spread = jnp.sqrt((jnp.sum((diagonal - mean) ** 2) + 2 * jnp.sum(beside**2)) / 6)
    a, b, c = (diagonal - mean) / spread
    d, e, f = beside / spread
    half = 0.5 * (a * b * c + 2 * d * e * f - a * f * f - b * e * e - c * d * d)
    angle = jnp.arccos(half) / 3
    return tuple(mean + 2 * spread * jnp.cos(angle + 2 * np.pi * k / 3) for k in range(3))


def elliptic_integrals(k, angle):
    """The complete elliptic integral by means, and an approximation of the incomplete one by quadrature."""
    one, other = jnp.ones_like(k), jnp.sqrt(1 - k * k)
    for _ in range(4):
        one, other = 0.5 * (one + other), jnp.sqrt(one * other)
    nodes = 0.5 * angle * (jnp.asarray(NODES, k.dtype) + 1)
    values = jnp.asarray(WEIGHTS, k.dtype) / jnp.sqrt(1 - (k * jnp.sin(nodes)) ** 2)
    return np.pi / 2 / one, 0.5 * angle * jnp.sum(values)


def stirling_log_beta(a, b):
    """The logarithm of the beta function, by series for that of the gamma function."""

    def log_gamma(x):
        shift = jnp.log(x * (x + 1) * (x + 2))
        z = x + 3
        inverse = 1 / (z * z)
        series = (1 / 12 - inverse * (1 / 360 - inverse / 1260)) / z
        return (z - 0.5) * jnp.log(z) - z + 0.5 * np.log(2 * np.pi) + series - shift

    return log_gamma(a) + log_gamma(b) - log_gamma(a + b)
