"""Functions of middle size: hundreds to tens of thousands of operations on small arrays, as users write them.

Each is a function of one array. Some have a second array, with respect to which they are not differentiated.
"""

import jax
import jax.numpy as jnp
import numpy as np


def _given(x, *constants):
    """Constants in the precision of an argument."""
    found = tuple(jnp.asarray(constant, x.dtype) for constant in constants)
    return found if len(found) > 1 else found[0]


def _turn(angle, tilt):
    """The rotation of a joint about its axis, which is tilted."""
    c, s = jnp.cos(angle), jnp.sin(angle)
    ct, st = float(np.cos(tilt)), float(np.sin(tilt))
    zero = jnp.zeros_like(c)
    return jnp.array([[c, -s, zero], [s * ct, c * ct, zero - st], [s * st, c * st, zero + ct]])


def _links(joints):
    numbers = np.arange(joints)
    tilts = np.where(numbers % 2, np.pi / 2, -np.pi / 2) * (numbers > 0)
    offsets = np.stack([0.05 * (numbers % 2), 0.02 * numbers, 0.2 + 0 * numbers], 1)
    masses, inertias = 3.0 / (1 + 0.1 * numbers), np.array([0.05, 0.04, 0.02])
    return tilts, offsets, masses, inertias


def inverse_dynamics(x):
    """Torques of a serial arm from positions, velocities and accelerations, by the recursion of Newton and Euler."""
    q, qd, qdd = x.reshape(3, -1)
    joints = len(q)
    tilts, *constants = _links(joints)
    offsets, masses, inertias, axis, centre = _given(x, *constants, [0.0, 0.0, 1.0], [0.0, 0.03, 0.1])
    w, wd, a = jnp.zeros(3, x.dtype), jnp.zeros(3, x.dtype), jnp.array([0.0, 0.0, 9.81], x.dtype)
    turns, forces, moments = [], [], []
    for n in range(joints):
        turn = _turn(q[n], tilts[n])
        a = turn.T @ (a + jnp.cross(wd, offsets[n]) + jnp.cross(w, jnp.cross(w, offsets[n])))
        carried = turn.T @ w
        wd = turn.T @ wd + jnp.cross(carried, axis * qd[n]) + axis * qdd[n]
        w = carried + axis * qd[n]
        force = masses[n] * (a + jnp.cross(wd, centre) + jnp.cross(w, jnp.cross(w, centre)))
        turns.append(turn)
        forces.append(force)
        moments.append(inertias * wd + jnp.cross(w, inertias * w) + jnp.cross(centre, force))
    f, m = jnp.zeros(3, x.dtype), jnp.zeros(3, x.dtype)
    torques = []
    for n in reversed(range(joints)):
        f, m = forces[n] + f, moments[n] + m
        torques.append(m[2])
        f = turns[n] @ f
        m = turns[n] @ m + jnp.cross(offsets[n], f)
    return jnp.stack(torques[::-1])


def forward_dynamics(x):
    """Accelerations of a serial arm from positions, velocities and torques, by its mass matrix."""
    q, qd, torque = x.reshape(3, -1)

    def torques(accelerations):
        return inverse_dynamics(jnp.concatenate([q, qd, accelerations]))

    bias = torques(jnp.zeros_like(q))
    mass = jax.vmap(torques, out_axes=1)(jnp.eye(len(q), dtype=x.dtype)) - bias[:, None]
    return jnp.linalg.solve(mass, torque - bias)


def end_effector(x):
    """The position of the end of a chain of joints, and its orientation as a quaternion."""
    q, p = jnp.array([1.0, 0, 0, 0], x.dtype), jnp.zeros(3, x.dtype)
    axes, arm = _given(x, np.eye(3), [0.1, 0.02, 0.3])
    for n, angle in enumerate(x):
        c, u = jnp.cos(angle / 2), jnp.sin(angle / 2) * axes[n % 3]
        v = q[1:]
        q = jnp.concatenate([(q[0] * c - v @ u)[None], q[0] * u + c * v + jnp.cross(v, u)])
        t = 2 * jnp.cross(q[1:], arm)
        p = p + arm + q[0] * t + jnp.cross(q[1:], t)
    return jnp.concatenate([p, q])


def skinning(x):
    """Forty vertices of a hand of nine bones, from twelve parameters. Weighted means of four bones move each vertex."""
    rng = np.random.default_rng(1)
    bones, vertices = 9, 40
    weights = np.zeros((vertices, bones))
    np.put_along_axis(
        weights, np.argsort(rng.random((vertices, bones)), 1)[:, :4], rng.dirichlet(np.ones(4), vertices), 1
    )
    rest, offsets, weights = _given(x, rng.random((vertices, 3)), rng.random((bones, 3)), weights)
    rotations, places = [_turn(x[3], 0.3)], [x[:3]]
    for bone in range(1, bones):
        parent = 0 if bone % 2 else bone - 1
        places.append(places[parent] + rotations[parent] @ offsets[bone])
        rotations.append(rotations[parent] @ _turn(x[3 + bone], 0.2 * bone))
    moved = jnp.einsum("bij,vj->bvi", jnp.stack(rotations), rest) + jnp.stack(places)[:, None]
    return jnp.einsum("vb,bvi->vi", weights, moved).ravel()


def _reactions(species, reactions, seed):
    rng = np.random.default_rng(seed)
    picked = np.argsort(rng.random((reactions, species)), 1)[:, :4]
    change = np.zeros((species, reactions))
    for column, (a, b, c, d) in enumerate(picked):
        change[[a, b], column] -= 1
        change[[c, d], column] += 1
    return picked, change, np.exp(rng.normal(size=reactions)), 1 + rng.random(reactions)


def kinetics(x):
    """Rates of mass action for species and the temperature, with 1.5 times as many reactions as species."""
    amounts, temperature = x[:-1], x[-1]
    picked, *constants = _reactions(len(x) - 1, (len(x) - 1) * 3 // 2, len(x))
    change, factors, energies = _given(x, *constants)
    k = factors * jnp.exp(-energies / temperature)
    rate = k * (amounts[picked[:, 0]] * amounts[picked[:, 1]] - 0.3 * amounts[picked[:, 2]] * amounts[picked[:, 3]])
    return jnp.concatenate([change @ rate, (energies @ rate)[None]])


def battery(x):
    """Rates of a battery from its state and current. Lithium diffuses in two electrodes, spheres of twelve shells."""
    negative, positive, current = x[:12], x[12:24], x[24]
    edges = np.linspace(0, 1, 13)
    areas, volumes = _given(x, edges[1:-1] ** 2, np.diff(edges**3) / 3)

    def shells(c, flux):
        diffusivity = 0.3 + 0.2 * jnp.exp(-3 * (c[1:] + c[:-1]) / 2)
        inner = areas * diffusivity * (c[1:] - c[:-1]) * 12
        return jnp.concatenate([inner, flux[None]]) - jnp.concatenate([jnp.zeros(1, x.dtype), inner])

    def overpotential(c, current):
        return 2 * jnp.arcsinh(current / (2 * jnp.sqrt(c * (1 - c))))

    voltage = (
        3.4 + 0.6 * jnp.tanh(4 * (0.5 - positive[-1])) - 0.1 * jnp.log(positive[-1] / (1 - positive[-1]))
        - 0.2 * jnp.exp(-20 * negative[-1]) - 0.05 * jnp.tanh(6 * (negative[-1] - 0.3))
        - 0.02 * (overpotential(positive[-1], current) + overpotential(negative[-1], current))
    )  # fmt: skip
    change = jnp.concatenate([shells(negative, -current) / volumes, shells(positive, current) / volumes])
    return jnp.concatenate([change, voltage[None]])


def neuron(x):
    """A cable of twelve compartments, each with Hodgkin and Huxley's channels."""
    v, m, h, n = x.reshape(4, 12)
    am, bm = 0.1 * (v + 40) / (1 - jnp.exp(-(v + 40) / 10)), 4 * jnp.exp(-(v + 65) / 18)
    ah, bh = 0.07 * jnp.exp(-(v + 65) / 20), 1 / (1 + jnp.exp(-(v + 35) / 10))
    an, bn = 0.01 * (v + 55) / (1 - jnp.exp(-(v + 55) / 10)), 0.125 * jnp.exp(-(v + 65) / 80)
    current = 120 * m**3 * h * (v - 50) + 36 * n**4 * (v + 77) + 0.3 * (v + 54)
    flow = 2.0 * (v[1:] - v[:-1])
    zero = jnp.zeros(1, x.dtype)
    spread = jnp.concatenate([flow, zero]) - jnp.concatenate([zero, flow])
    return jnp.concatenate([spread - current, am * (1 - m) - bm * m, ah * (1 - h) - bh * h, an * (1 - n) - bn * n])


def _weights(x, rows, columns, seed):
    return _given(x, np.random.default_rng(seed).normal(size=(rows, columns)) / np.sqrt(columns))


def network(x):
    """A network with two hidden layers, as a function of its inputs."""
    first = jnp.tanh(_weights(x, 32, 16, 0) @ x)
    second = jnp.tanh(_weights(x, 32, 32, 1) @ first)
    return _weights(x, 8, 32, 2) @ second


def _normalised(x):
    centred = x - jnp.mean(x, -1, keepdims=True)
    return centred / jnp.sqrt(jnp.mean(centred**2, -1, keepdims=True) + 1e-5)


def transformer(x):
    """A block of a transformer, as a function of its inputs.

    It has four tokens of eight numbers, attention, and a layer twice as wide.
    """
    tokens = x.reshape(4, 8)
    y = _normalised(tokens)
    query, key, value = (y @ _weights(x, 8, 8, seed) for seed in (0, 1, 2))
    tokens = tokens + jax.nn.softmax(query @ key.T / 8**0.5, -1) @ value @ _weights(x, 8, 8, 3)
    hidden = jax.nn.gelu(_normalised(tokens) @ _weights(x, 16, 8, 4).T)
    return (tokens + hidden @ _weights(x, 8, 16, 5).T).ravel()


def radiation(x):
    """Upward and downward fluxes between sixteen layers of an atmosphere, from optical depths and temperatures."""
    depths, temperatures = x.reshape(2, 16)
    through, glow = jnp.exp(-1.66 * depths), temperatures**4
    down, up = [jnp.zeros((), x.dtype)], [1.1 * temperatures[-1] ** 4]
    for layer in range(16):
        down.append(down[-1] * through[layer] + (1 - through[layer]) * glow[layer])
    for layer in reversed(range(16)):
        up.append(up[-1] * through[layer] + (1 - through[layer]) * glow[layer])
    return jnp.stack(down) - jnp.stack(up[::-1])


def kalman(x):
    """The mean of twenty states after a nonlinear measurement of four ranges, from the earlier mean and the noise."""
    mean, noise = x[:20], x[20:]
    rng = np.random.default_rng(4)
    root = 0.3 * rng.normal(size=(20, 20))
    measured = [1.0, 1.2, 0.8, 1.1]
    covariance, beacons, measured = _given(x, root @ root.T + np.eye(20), rng.normal(size=(4, 3)), measured)

    def ranges(state):
        return jnp.sqrt(jnp.sum((beacons - state[:3]) ** 2, 1) + 0.01) + 0.1 * jnp.tanh(state[3:7])

    difference = mean[:3] - beacons
    distance = jnp.sqrt(jnp.sum(difference**2, 1) + 0.01)
    slope = jnp.zeros((4, 20), x.dtype).at[:, :3].set(difference / distance[:, None])
    slope = slope.at[jnp.arange(4), jnp.arange(3, 7)].set(0.1 * (1 - jnp.tanh(mean[3:7]) ** 2))
    gained = covariance @ slope.T
    innovation = measured - ranges(mean)
    return mean + gained @ jnp.linalg.solve(slope @ gained + jnp.diag(noise**2), innovation)


def multibody(x):
    """Forces between eight bodies: gravity, a repulsion at short distances, and springs between neighbours."""
    places = x.reshape(8, 3)
    difference, itself = places[:, None] - places[None], _given(x, np.eye(8))
    squared = jnp.sum(difference**2, -1) + itself
    strength = (1 / squared**1.5 - 0.1 / squared**4) * (1 - itself)
    springs = jnp.zeros_like(places).at[:-1].add(places[1:] - places[:-1]).at[1:].add(places[:-1] - places[1:])
    return (springs - jnp.sum(strength[..., None] * difference, 1)).ravel()
