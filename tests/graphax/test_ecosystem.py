"""Jacobians of unchanged functions from the JAX ecosystem, compared with JAX's own."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import graphax

# The functions run once, so compiling fast matters and running fast does not.
compiled = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


class Case(NamedTuple):
    """A function, the arguments to differentiate with respect to, the reference transformation, and a tolerance."""

    function: Callable
    args: tuple
    argnums: int | tuple[int, ...] = 0
    reference: Callable = jax.jacfwd
    tolerance: float = 1e-8


BUILDERS: dict[str, Callable[[], Case]] = {}


def case(builder: Callable[[], Case]) -> Callable[[], Case]:
    """Register a builder of a case. It skips the case if its library is missing."""
    BUILDERS[builder.__name__] = builder
    return builder


def cases(variants: dict[str, Any]):
    """Register one case per variant. The builder receives the variant as its argument."""

    def register(builder: Callable[[Any], Case]) -> Callable[[Any], Case]:
        BUILDERS.update({f"{builder.__name__}_{name}": partial(builder, variant) for name, variant in variants.items()})
        return builder

    return register


def random_array(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).normal(size=shape))


def positive_array(*shape: int, seed: int = 0) -> jax.Array:
    return jnp.asarray(np.random.default_rng(seed).uniform(0.2, 0.8, size=shape))


def positive_definite(size: int, seed: int = 0) -> jax.Array:
    factor = random_array(size, size, seed=seed)
    return factor @ factor.T + size * jnp.eye(size)


def assert_same_tree(found: Any, expected: Any, tolerance: float) -> None:
    """Same structure, shapes, dtypes and values; ``tolerance`` is relative to the largest entry of each array."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for (path, want), got in zip(jax.tree_util.tree_leaves_with_path(expected), jax.tree.leaves(found), strict=True):
        name = jax.tree_util.keystr(path)
        assert (got.shape, got.dtype) == (want.shape, want.dtype), name
        scale = float(np.max(np.abs(want), initial=0.0))
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance * scale, err_msg=name)


@pytest.fixture(autouse=True)
def double_precision():
    with jax.enable_x64(True):
        yield


# Equinox


@case
def equinox_mlp_by_input():
    eqx = pytest.importorskip("equinox")
    mlp = eqx.nn.MLP(3, 2, 5, 2, key=jax.random.key(0))
    return Case(mlp, (random_array(3),))


@case
def equinox_mlp_by_parameters():
    eqx = pytest.importorskip("equinox")
    parameters, static = eqx.partition(eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0)), eqx.is_inexact_array)

    def predict(parameters, x):
        return jax.vmap(eqx.combine(parameters, static))(x)

    return Case(predict, (parameters, random_array(4, 3)), (0, 1))


@case
def equinox_filter_jit():
    eqx = pytest.importorskip("equinox")
    mlp = eqx.nn.MLP(3, 2, 4, 1, activation=jax.nn.gelu, key=jax.random.key(0))
    return Case(lambda x: eqx.filter_jit(mlp)(x), (random_array(3),))


@case
def equinox_convolution():
    eqx = pytest.importorskip("equinox")
    layer = eqx.nn.Conv2d(2, 3, kernel_size=(3, 2), stride=2, padding=1, key=jax.random.key(0))
    parameters, static = eqx.partition(layer, eqx.is_inexact_array)
    return Case(lambda p, x: eqx.combine(p, static)(x), (parameters, random_array(2, 5, 4)), (0, 1))


@case
def equinox_pooled_convolution():
    eqx = pytest.importorskip("equinox")
    model = eqx.nn.Sequential(
        [
            eqx.nn.Conv1d(2, 3, kernel_size=3, key=jax.random.key(0)),
            eqx.nn.Lambda(jax.nn.silu),
            eqx.nn.MaxPool1d(2, stride=2),
            eqx.nn.AvgPool1d(2),
        ]
    )
    return Case(model, (random_array(2, 9),))


@case
def equinox_gru_over_scan():
    eqx = pytest.importorskip("equinox")
    parameters, static = eqx.partition(eqx.nn.GRUCell(2, 3, key=jax.random.key(0)), eqx.is_inexact_array)

    def last_state(parameters, sequence):
        cell = eqx.combine(parameters, static)
        return jax.lax.scan(lambda state, x: (cell(x, state), None), jnp.zeros(3), sequence)[0]

    return Case(last_state, (parameters, random_array(4, 2)), (0, 1))


@case
def equinox_layer_norm():
    eqx = pytest.importorskip("equinox")
    parameters, static = eqx.partition(eqx.nn.LayerNorm((2, 3)), eqx.is_inexact_array)
    return Case(lambda p, x: eqx.combine(p, static)(x), (parameters, random_array(2, 3)), (0, 1))


@case
def equinox_multihead_attention():
    eqx = pytest.importorskip("equinox")
    attention = eqx.nn.MultiheadAttention(2, 4, key_size=3, value_size=3, output_size=5, key=jax.random.key(0))
    return Case(attention, (random_array(3, 4), random_array(2, 3, seed=1), random_array(2, 3, seed=2)), (0, 1, 2))


@case
def equinox_custom_vjp():
    eqx = pytest.importorskip("equinox")

    @eqx.filter_custom_vjp
    def clipped_sine(x):
        return jnp.sin(x)

    @clipped_sine.def_fwd
    def forward(perturbed, x):
        return jnp.sin(x), x

    @clipped_sine.def_bwd
    def backward(residual, gradient, perturbed, x):
        return jnp.clip(gradient * jnp.cos(residual), -0.5, 0.5)

    return Case(lambda x: clipped_sine(2.0 * x), (random_array(4),), reference=jax.jacrev)


@case
def equinox_checkpointed():
    eqx = pytest.importorskip("equinox")
    mlp = eqx.nn.MLP(3, 2, 4, 1, key=jax.random.key(0))
    return Case(lambda x: eqx.filter_checkpoint(mlp)(jnp.tanh(x)), (random_array(3),))


# Flax


@case
def flax_linen_mlp():
    nn = pytest.importorskip("flax.linen")
    model = nn.Sequential([nn.Dense(4), nn.gelu, nn.Dense(2)])
    x = random_array(5, 3)
    variables = model.init(jax.random.key(0), x)
    variables = jax.tree.map(lambda leaf: leaf.astype(float), variables)
    return Case(model.apply, (variables, x), (0, 1))


@case
def flax_linen_attention():
    nn = pytest.importorskip("flax.linen")
    model = nn.MultiHeadDotProductAttention(num_heads=2, qkv_features=4, out_features=3, param_dtype=jnp.float64)
    query, memory = random_array(3, 4), random_array(2, 4, seed=1)
    variables = model.init(jax.random.key(0), query, memory)
    return Case(lambda q, m: model.apply(variables, q, m), (query, memory), (0, 1))


@case
def flax_linen_lstm():
    nn = pytest.importorskip("flax.linen")
    model = nn.RNN(nn.LSTMCell(3, param_dtype=jnp.float64))
    sequence = random_array(2, 4, 2)
    variables = model.init(jax.random.key(0), sequence)
    return Case(model.apply, (variables, sequence), (0, 1))


@case
def flax_linen_batch_norm_with_running_statistics():
    nn = pytest.importorskip("flax.linen")
    model = nn.BatchNorm(use_running_average=True, param_dtype=jnp.float64)
    x = random_array(4, 3)
    variables = model.init(jax.random.key(0), x)
    return Case(model.apply, (variables, x), (0, 1))


@case
def flax_nnx_convolution_and_batch_norm():
    nnx = pytest.importorskip("flax.nnx")
    rngs = nnx.Rngs(0)
    model = nnx.Sequential(
        nnx.Conv(2, 3, kernel_size=(3,), rngs=rngs, param_dtype=jnp.float64),
        nnx.BatchNorm(3, rngs=rngs, use_running_average=True, param_dtype=jnp.float64),
        nnx.relu,
    )
    graph, parameters, rest = nnx.split(model, nnx.Param, ...)
    return Case(lambda p, x: nnx.merge(graph, p, rest)(x), (parameters, random_array(2, 4, 2)), (0, 1))


# Optax


@case
def optax_softmax_cross_entropy():
    optax = pytest.importorskip("optax")
    labels = jax.nn.softmax(random_array(4, 3, seed=1))
    return Case(optax.softmax_cross_entropy, (random_array(4, 3), labels), (0, 1))


@case
def optax_cross_entropy_with_integer_labels():
    optax = pytest.importorskip("optax")
    loss = optax.softmax_cross_entropy_with_integer_labels
    return Case(loss, (random_array(4, 3), jnp.array([0, 2, 1, 2])))


@case
def optax_regression_losses():
    optax = pytest.importorskip("optax")

    def losses(prediction, target):
        return {
            "huber": optax.huber_loss(prediction, target, delta=0.5),
            "log_cosh": optax.log_cosh(prediction, target),
            "cosine": optax.cosine_similarity(prediction, target),
        }

    return Case(losses, (random_array(2, 3), random_array(2, 3, seed=1)), (0, 1))


@case
def optax_update_by_gradients():
    optax = pytest.importorskip("optax")
    optimizer = optax.chain(optax.clip_by_global_norm(0.5), optax.adamw(1e-2))
    parameters = {"w": random_array(2, 3), "b": random_array(2, seed=1)}
    gradients = {"w": random_array(2, 3, seed=2), "b": random_array(2, seed=3)}
    state = optimizer.init(parameters)
    return Case(lambda g, p: optimizer.update(g, state, p)[0], (gradients, parameters), (0, 1))


@case
def optax_unrolled_adam():
    optax = pytest.importorskip("optax")
    optimizer = optax.adam(1e-1)
    inputs, targets = random_array(5, 3, seed=1), random_array(5, seed=2)

    def loss(w):
        return optax.l2_loss(jnp.tanh(inputs @ w), targets).mean()

    def train(w):
        state = optimizer.init(w)
        for _ in range(3):
            updates, state = optimizer.update(jax.grad(loss)(w), state)
            w = optax.apply_updates(w, updates)
        return w

    return Case(train, (random_array(3),))


@case
def optax_scanned_sgd_by_learning_rate():
    optax = pytest.importorskip("optax")
    inputs, targets = random_array(5, 3, seed=1), random_array(5, seed=2)

    def train(learning_rate, w):
        optimizer = optax.sgd(learning_rate, momentum=0.9)

        def step(carry, _):
            w, state = carry
            gradient = jax.grad(lambda v: jnp.mean((inputs @ v - targets) ** 2))(w)
            updates, state = optimizer.update(gradient, state)
            return (optax.apply_updates(w, updates), state), None

        return jax.lax.scan(step, (w, optimizer.init(w)), length=4)[0][0]

    return Case(train, (jnp.array(0.1), random_array(3)), (0, 1))


# NumPyro


@cases(
    {
        "normal": ("Normal", (random_array, positive_array), random_array),
        "student": ("StudentT", (positive_array, random_array, positive_array), random_array),
        "gamma": ("Gamma", (positive_array, positive_array), positive_array),
        "dirichlet": ("Dirichlet", (positive_array,), lambda n, seed: jax.nn.softmax(random_array(n, seed=seed))),
    }
)
def numpyro_log_density(variant):
    distributions = pytest.importorskip("numpyro.distributions")
    name, make_parameters, make_sample = variant
    parameters = tuple(make(3, seed=seed) for seed, make in enumerate(make_parameters))

    def log_density(parameters, sample):
        return getattr(distributions, name)(*parameters).log_prob(sample)

    return Case(log_density, (parameters, make_sample(3, seed=9)), (0, 1))


@case
def numpyro_multivariate_normal():
    distributions = pytest.importorskip("numpyro.distributions")

    def log_density(mean, covariance, sample):
        return distributions.MultivariateNormal(mean, covariance).log_prob(sample)

    return Case(log_density, (random_array(3), positive_definite(3), random_array(2, 3, seed=1)), (0, 1, 2))


@case
def numpyro_mixture():
    distributions = pytest.importorskip("numpyro.distributions")

    def log_density(logits, means, sample):
        weights = distributions.Categorical(logits=logits)
        return distributions.MixtureSameFamily(weights, distributions.Normal(means, 1.0)).log_prob(sample)

    return Case(log_density, (random_array(2), random_array(2, seed=1), random_array(3, seed=2)), (0, 1, 2))


@case
def numpyro_log_joint():
    numpyro = pytest.importorskip("numpyro")
    log_density = pytest.importorskip("numpyro.infer.util").log_density
    distributions = numpyro.distributions
    features = random_array(5, 2)

    def model(observed):
        weights = numpyro.sample("weights", distributions.Normal(0.0, 1.0).expand([2]).to_event(1))
        noise = numpyro.sample("noise", distributions.HalfNormal(1.0))
        with numpyro.plate("data", 5):
            numpyro.sample("observed", distributions.Normal(features @ weights, noise), obs=observed)

    latent = {"weights": random_array(2, seed=1), "noise": jnp.array(0.7)}
    return Case(
        lambda sites, observed: log_density(model, (observed,), {}, sites)[0], (latent, random_array(5, seed=2)), (0, 1)
    )


@cases({"stick_breaking": "StickBreakingTransform", "lower_cholesky": "LowerCholeskyTransform"})
def numpyro_transform(name):
    transforms = pytest.importorskip("numpyro.distributions.transforms")
    transform = getattr(transforms, name)()

    def forward_and_volume(x):
        y = transform(x)
        return y, transform.log_abs_det_jacobian(x, y)

    return Case(forward_and_volume, (random_array(6),))


@case
def numpyro_reparameterised_sample():
    distributions = pytest.importorskip("numpyro.distributions")

    def sample(concentration, rate):
        return distributions.Gamma(concentration, rate).sample(jax.random.key(0), (2,))

    return Case(sample, (positive_array(3), positive_array(3, seed=1)), (0, 1))


# Diffrax


def lotka_volterra(t, y, parameters):
    prey, predators = y
    growth, decay = parameters
    return jnp.stack([growth * prey - prey * predators, prey * predators - decay * predators])


def solve_lotka_volterra(diffrax, adjoint, y0, parameters, stepsize_controller, **how):
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(lotka_volterra),
        diffrax.Tsit5(),
        t0=0.0,
        t1=0.5,
        dt0=0.1,
        y0=y0,
        args=parameters,
        saveat=diffrax.SaveAt(ts=jnp.array([0.2, 0.35, 0.5])),
        stepsize_controller=stepsize_controller,
        adjoint=adjoint,
        **how,
    )
    return solution.ys


LOTKA_VOLTERRA_ARGS = (np.array([1.0, 0.5]), np.array([1.1, 0.4]))


@case
def diffrax_adaptive_steps():
    diffrax = pytest.importorskip("diffrax")
    controller = diffrax.PIDController(rtol=1e-3, atol=1e-5)

    def solve(y0, parameters):
        return solve_lotka_volterra(diffrax, diffrax.ForwardMode(), y0, parameters, controller)

    return Case(solve, tuple(map(jnp.asarray, LOTKA_VOLTERRA_ARGS)), (0, 1))


@case
def diffrax_adaptive_steps_checkpointed():
    diffrax = pytest.importorskip("diffrax")
    controller = diffrax.PIDController(rtol=1e-3, atol=1e-5)

    def solve(y0, parameters):
        adjoint = diffrax.RecursiveCheckpointAdjoint()
        return solve_lotka_volterra(diffrax, adjoint, y0, parameters, controller, max_steps=16)

    return Case(solve, tuple(map(jnp.asarray, LOTKA_VOLTERRA_ARGS)), (0, 1), jax.jacrev)


@case
def diffrax_fixed_steps():
    diffrax = pytest.importorskip("diffrax")
    controller = diffrax.ConstantStepSize()

    def solve(y0, parameters):
        return solve_lotka_volterra(diffrax, diffrax.DirectAdjoint(), y0, parameters, controller, max_steps=6)

    return Case(solve, tuple(map(jnp.asarray, LOTKA_VOLTERRA_ARGS)), (0, 1))


@case
def diffrax_implicit_solver():
    diffrax = pytest.importorskip("diffrax")

    def solve(y0, rate):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, rate: -rate * y**3),
            diffrax.Kvaerno3(),
            t0=0.0,
            t1=0.2,
            dt0=0.1,
            y0=y0,
            args=rate,
            stepsize_controller=diffrax.PIDController(rtol=1e-4, atol=1e-6),
            adjoint=diffrax.ForwardMode(),
        ).ys

    return Case(solve, (positive_array(2), jnp.array(1.5)), (0, 1))


# Lineax


@cases({"lu": "LU", "qr": "QR", "svd": "SVD"})
def lineax_square_solve(solver):
    lineax = pytest.importorskip("lineax")

    def solve(matrix, vector):
        operator = lineax.MatrixLinearOperator(matrix)
        return lineax.linear_solve(operator, vector, solver=getattr(lineax, solver)()).value

    return Case(solve, (positive_definite(3) + random_array(3, 3, seed=2), random_array(3, seed=1)), (0, 1))


@cases({"cholesky": {"name": "Cholesky"}, "cg": {"name": "CG", "rtol": 1e-12, "atol": 1e-12}})
def lineax_positive_solve(solver):
    lineax = pytest.importorskip("lineax")
    settings = {key: value for key, value in solver.items() if key != "name"}

    def solve(matrix, vector):
        symmetric = (matrix + matrix.T) / 2
        operator = lineax.MatrixLinearOperator(symmetric, lineax.positive_semidefinite_tag)
        return lineax.linear_solve(operator, vector, solver=getattr(lineax, solver["name"])(**settings)).value

    return Case(solve, (positive_definite(3), random_array(3, seed=1)), (0, 1))


@cases({"tall": (5, 3), "wide": (2, 4)})
def lineax_least_squares(shape):
    lineax = pytest.importorskip("lineax")

    def solve(matrix, vector):
        return lineax.linear_solve(lineax.MatrixLinearOperator(matrix), vector, solver=lineax.QR()).value

    return Case(solve, (random_array(*shape), random_array(shape[0], seed=1)), (0, 1))


@case
def lineax_matrix_free_solve():
    lineax = pytest.importorskip("lineax")

    def solve(diagonal, vector):
        structure = jax.ShapeDtypeStruct(vector.shape, vector.dtype)
        operator = lineax.FunctionLinearOperator(lambda x: diagonal * x + 0.1 * jnp.roll(x, 1), structure)
        return lineax.linear_solve(operator, vector, solver=lineax.GMRES(rtol=1e-12, atol=1e-12)).value

    return Case(solve, (2.0 + positive_array(4), random_array(4, seed=1)), (0, 1))


# Optimistix


@case
def optimistix_root_by_parameters():
    optimistix = pytest.importorskip("optimistix")
    solver = optimistix.Newton(rtol=1e-10, atol=1e-10)

    def root(parameters):
        return optimistix.root_find(lambda y, p: y**3 + y - p, solver, jnp.ones(3), args=parameters).value

    return Case(root, (random_array(3),))


@case
def optimistix_least_squares_by_targets():
    optimistix = pytest.importorskip("optimistix")
    solver = optimistix.LevenbergMarquardt(rtol=1e-10, atol=1e-10)
    times = jnp.linspace(0.0, 1.0, 5)

    def residuals(y, targets):
        return y[0] * jnp.exp(-y[1] * times) - targets

    def fit(targets):
        return optimistix.least_squares(residuals, solver, jnp.array([1.0, 1.0]), args=targets).value

    return Case(fit, (2.0 * jnp.exp(-0.5 * times) + 0.01 * random_array(5),))


# JAX itself


@case
def jax_minimize():
    minimize = pytest.importorskip("jax.scipy.optimize").minimize

    def minimiser(target):
        return minimize(
            lambda x: jnp.sum((x - target) ** 2 + 0.1 * x**4), jnp.zeros(2), method="BFGS", options={"maxiter": 4}
        ).x

    return Case(minimiser, (random_array(2),))


SPECIAL_FUNCTIONS = {
    "errors": ["erf", "erfc", "erfinv", "ndtr", "ndtri", "log_ndtr", "logit", "expit"],
    "gammas": ["digamma", "gammaln", "entr"],
    "bessels": ["i0", "i0e", "i1", "i1e"],
    "integrals": ["expi"],
}


@cases(SPECIAL_FUNCTIONS)
def jax_special(names):
    def evaluate(x):
        return {name: getattr(jax.scipy.special, name)(x) for name in names}

    return Case(evaluate, (positive_array(2, 3),))


@case
def jax_special_of_two():
    names = ["beta", "betaln", "gammainc", "gammaincc", "rel_entr", "kl_div", "xlogy", "xlog1py"]

    def evaluate(x, y):
        return {name: getattr(jax.scipy.special, name)(x, y) for name in names}

    return Case(evaluate, (positive_array(3), positive_array(3, seed=1)), (0, 1))


@case
def jax_special_with_parameters():
    def evaluate(x):
        special = jax.scipy.special
        return special.betainc(2.0, 1.5, x), special.polygamma(1, x), special.hyp1f1(1.0, 2.0, x)

    return Case(evaluate, (positive_array(4),))


@case
def jax_logsumexp_with_weights():
    def weighted(x, weights):
        return jax.scipy.special.logsumexp(x, axis=1, b=weights)

    return Case(weighted, (random_array(2, 3), positive_array(2, 3)), (0, 1))


@cases(
    {
        "expm": jax.scipy.linalg.expm,
        "eigh": lambda a: jnp.linalg.eigh(a + a.T),
        "inverse": jnp.linalg.inv,
        "determinant": jnp.linalg.det,
        "log_determinant": lambda a: jnp.linalg.slogdet(a)[1],
        "lu": jax.scipy.linalg.lu,
        "matrix_power": partial(jnp.linalg.matrix_power, n=3),
        "cholesky": lambda a: jnp.linalg.cholesky(a @ a.T + jnp.eye(3)),
    }
)
def jax_square_matrix(function):
    return Case(function, (random_array(3, 3) + 2.0 * jnp.eye(3),))


@cases({"svd": partial(jnp.linalg.svd, full_matrices=False), "qr": jnp.linalg.qr, "pseudo_inverse": jnp.linalg.pinv})
def jax_tall_matrix(function):
    return Case(function, (random_array(4, 3),))


@cases(
    {
        "solve": jnp.linalg.solve,
        "least_squares": lambda a, b: jnp.linalg.lstsq(a, b)[0],
        "triangular": partial(jax.scipy.linalg.solve_triangular, lower=True),
        "cholesky": lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a @ a.T), b),
        "lu": lambda a, b: jax.scipy.linalg.lu_solve(jax.scipy.linalg.lu_factor(a), b),
        "cg": lambda a, b: jax.scipy.sparse.linalg.cg(lambda x: a @ (a.T @ x), b, tol=1e-12)[0],
    }
)
def jax_linear_solve(solve):
    return Case(solve, (random_array(3, 3) + 2.0 * jnp.eye(3), random_array(3, 2, seed=1)), (0, 1))


@case
def jax_interpolation():
    nodes = jnp.array([0.0, 0.3, 0.5, 1.0])
    return Case(jnp.interp, (jnp.array([0.1, 0.4, 0.9, 1.2, -0.1]), nodes, random_array(4)), (0, 1, 2))


@case
def jax_grid_interpolation():
    def interpolate(image, coordinates):
        return jax.scipy.ndimage.map_coordinates(image, coordinates, order=1)

    return Case(interpolate, (random_array(3, 4), 2.0 * positive_array(2, 5)), (0, 1))


@case
def jax_image_resize():
    return Case(lambda image: jax.image.resize(image, (5, 3, 2), "cubic"), (random_array(3, 4, 2),))


@case
def jax_signal_convolution():
    return Case(jax.scipy.signal.convolve, (random_array(5), random_array(3, seed=1)), (0, 1))


@case
def jax_spectral_power():
    return Case(lambda x: jnp.abs(jnp.fft.rfft(x, axis=0)) ** 2, (random_array(6, 2),))


@cases(
    {
        "normal": lambda key, location, scale: location + scale * jax.random.normal(key, (2, 3)),
        "multivariate_normal": lambda key, location, scale: jax.random.multivariate_normal(
            key, location, jnp.diag(scale), (2,)
        ),
        "truncated": lambda key, location, scale: jax.random.truncated_normal(key, location, location + scale, (2, 3)),
        "gumbel_softmax": lambda key, location, scale: jax.nn.softmax(
            (location + jax.random.gumbel(key, (2, 3))) / scale
        ),
    }
)
def jax_reparameterised(sample):
    return Case(sample, (jax.random.key(0), random_array(3), positive_array(3)), (1, 2))


# jax.nn.dot_product_attention computes the softmax in single precision whatever it is given.
SINGLE_PRECISION = 1e-6

ACTIVATIONS = {
    "rectifiers": ["celu", "elu", "leaky_relu", "relu", "relu6", "selu", "softplus", "sparse_plus", "squareplus"],
    "sigmoids": ["gelu", "glu", "hard_sigmoid", "hard_silu", "hard_tanh", "log_sigmoid", "mish", "sigmoid", "silu"],
    "normalisations": ["log_softmax", "soft_sign", "softmax", "standardize"],
}


@cases(ACTIVATIONS)
def jax_activation(names):
    def evaluate(x):
        return {name: getattr(jax.nn, name)(x) for name in names}

    return Case(evaluate, (2.0 * random_array(3, 4),))


@case
def jax_dot_product_attention():
    attend = partial(jax.nn.dot_product_attention, is_causal=True)
    query, key, value = (random_array(1, 3, 2, 4, seed=seed) for seed in range(3))
    return Case(attend, (query, key, value), (0, 1, 2), tolerance=SINGLE_PRECISION)


@case
def jax_selection_and_order():
    def mixed(x):
        return jnp.where(x > 0, jnp.cumprod(x, axis=1), jnp.sort(x, axis=1)), jnp.median(x, axis=0)

    return Case(mixed, (random_array(3, 4),))


@case
def jax_odeint():
    odeint = pytest.importorskip("jax.experimental.ode").odeint
    times = jnp.array([0.0, 0.2, 0.5])

    def solve(y0, rate):
        return odeint(lambda y, t, rate: -rate * jnp.sin(y), y0, times, rate)

    return Case(solve, (random_array(2), jnp.array(1.3)), (0, 1), jax.jacrev)


@case
def jax_sparse_matrix_vector():
    sparse = pytest.importorskip("jax.experimental.sparse")
    indices = jnp.array([[0, 1], [2, 0], [1, 1]])

    def product(data, vector):
        return sparse.BCOO((data, indices), shape=(3, 2)) @ vector

    return Case(product, (random_array(3), random_array(2, seed=1)), (0, 1))


@case
def jax_custom_root():
    def square_root(x):
        def solve(residual, guess):
            return jax.lax.fori_loop(0, 8, lambda _, y: (y + x / y) / 2, guess)

        def tangent_solve(linear, y):
            return y / linear(jnp.ones_like(y))

        return jax.lax.custom_root(lambda y: y**2 - x, jnp.ones_like(x), solve, tangent_solve)

    return Case(square_root, (positive_array(3),))


# Tests of all cases


@pytest.fixture
def built(request) -> Case:
    return BUILDERS[request.param]()


def assert_same_jacobian(built: Case, transform: Callable = lambda jacobian: jacobian) -> None:
    """Compare ``transform`` of `graphax.jacve` with ``transform`` of the reference, compiled as one program."""
    ours = transform(graphax.jacve(built.function, argnums=built.argnums))
    reference = transform(built.reference(built.function, built.argnums))
    found, expected = compiled(lambda *args: (ours(*args), reference(*args)))(*built.args)
    assert_same_tree(found, expected, built.tolerance)


# Libraries whose functions take long to compile.
LONG = ("diffrax", "numpyro", "optimistix", "lineax", "jax_minimize")


@pytest.mark.parametrize(
    "built",
    [pytest.param(name, marks=pytest.mark.slow if name.startswith(LONG) else ()) for name in BUILDERS],
    indirect=True,
)
def test_jacobian_equals_that_of_jax(built):
    assert_same_jacobian(built)


@pytest.mark.slow
@pytest.mark.parametrize(
    "built",
    [
        "equinox_mlp_by_input",
        "flax_linen_mlp",
        "optax_softmax_cross_entropy",
        "numpyro_log_density_normal",
        "jax_tall_matrix_qr",
    ],
    indirect=True,
)
def test_jacobian_without_jit(built):
    found = graphax.jacve(built.function, argnums=built.argnums)(*built.args)
    expected = compiled(built.reference(built.function, built.argnums))(*built.args)
    assert_same_tree(found, expected, built.tolerance)


@pytest.mark.slow
@pytest.mark.parametrize(
    "built",
    [
        "equinox_gru_over_scan",
        "flax_linen_attention",
        "optax_unrolled_adam",
        "numpyro_multivariate_normal",
        "diffrax_adaptive_steps",
        "lineax_square_solve_lu",
        "jax_tall_matrix_svd",
    ],
    indirect=True,
)
def test_jacobian_under_vmap(built):
    batch = jax.tree.map(lambda leaf: jnp.stack([leaf, 1.1 * leaf]), built.args)
    assert_same_jacobian(built._replace(args=batch), jax.vmap)


def sum_of_squares(tree: Any) -> jax.Array:
    return sum((jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)), jnp.zeros(()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "built",
    ["equinox_mlp_by_parameters", "numpyro_log_density_gamma", "lineax_square_solve_lu", "jax_tall_matrix_svd"],
    indirect=True,
)
def test_gradient_of_the_jacobian(built):
    def gradient_of_norm(jacobian):
        return jax.grad(lambda *args: sum_of_squares(jacobian(*args)), built.argnums)

    assert_same_jacobian(built, gradient_of_norm)


@pytest.mark.slow
@pytest.mark.parametrize(
    "built",
    ["equinox_layer_norm", "optax_softmax_cross_entropy", "numpyro_log_joint", "lineax_positive_solve_cholesky"],
    indirect=True,
)
def test_jacobian_of_the_gradient(built):
    gradient = jax.grad(lambda *args: sum_of_squares(built.function(*args)), built.argnums)
    assert_same_jacobian(built._replace(function=gradient))


@pytest.mark.slow
@pytest.mark.parametrize("built", ["numpyro_log_joint", "jax_square_matrix_log_determinant"], indirect=True)
def test_hessian(built):
    expected = compiled(jax.hessian(built.function, built.argnums))(*built.args)
    found = compiled(graphax.hessve(built.function, argnums=built.argnums))(*built.args)
    assert_same_tree(found, expected, built.tolerance)
