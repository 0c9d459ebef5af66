"""Examples for `kernel_coverage.py`: functions that need special arguments, and names without an example.

The names of the parameters of an example select its arguments; see `KINDS` there.
"""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp
import jax.scipy.special as jsp
import numpy as np
from jax import lax

Examples = Mapping[str, Callable]
KNOWN, TWICE = np.array([2, 0]), np.array([1, 3, 1])
# JAX differentiates products at known indices only with `unique_indices=True`.
UNIQUE = {"unique_indices": True}

NUMPY: Examples = {
    "apply_along_axis": lambda w: jnp.apply_along_axis(jnp.cumsum, 1, w),
    "apply_over_axes": lambda w: jnp.apply_over_axes(jnp.sum, w, [0]),
    "argpartition": lambda x: jnp.argpartition(x, 1),
    "argwhere": lambda x: jnp.argwhere(x > 0, size=2),
    "array_split": lambda x: jnp.array_split(x, 3),
    "astype": lambda x: jnp.astype(x, np.float32),
    "bincount": lambda k, x: jnp.bincount(k, x, length=4),
    "bitwise_and": lambda k, j: jnp.bitwise_and(k, j),
    "bitwise_count": lambda k: jnp.bitwise_count(k),
    "bitwise_invert": lambda k: jnp.bitwise_invert(k),
    "bitwise_left_shift": lambda k, j: jnp.bitwise_left_shift(k, j),
    "bitwise_not": lambda k: jnp.bitwise_not(k),
    "bitwise_or": lambda k, j: jnp.bitwise_or(k, j),
    "bitwise_right_shift": lambda k, j: jnp.bitwise_right_shift(k, j),
    "bitwise_xor": lambda k, j: jnp.bitwise_xor(k, j),
    "broadcast_to": lambda x: jnp.broadcast_to(x, (3, 4)),
    "choose": lambda k, x, y: jnp.choose(k, [x, y, x * y, x], mode="clip"),
    "compress": lambda x: jnp.compress(np.array([True, False, True]), x, size=2),
    "delete": lambda x: jnp.delete(x, 1),
    "dsplit": lambda x: jnp.dsplit(x.reshape(1, 1, 4), 2),
    "einsum": lambda w, x: jnp.einsum("ij,j->i", w, x),
    "expand_dims": lambda x: jnp.expand_dims(x, 1),
    "extract": lambda x: jnp.extract(x > 0, x, size=2),
    "fill_diagonal": lambda m, s: jnp.fill_diagonal(m, s, inplace=False),
    "flatnonzero": lambda x: jnp.flatnonzero(x > 0, size=2),
    "fromfunction": lambda x: jnp.fromfunction(lambda n: n * x, (4,)),
    "frompyfunc": lambda x, y: jnp.frompyfunc(jnp.hypot, nin=2, nout=1)(x, y),
    "full": lambda s: jnp.full((2, 3), s),
    "gcd": lambda k, j: jnp.gcd(k, j),
    "hsplit": lambda x: jnp.hsplit(x, 2),
    "insert": lambda x, s: jnp.insert(x, 1, s),
    "interp": lambda x, y: jnp.interp(x, np.linspace(-2.0, 2.0, 4), y),
    "intersect1d": lambda x, y: jnp.intersect1d(x, y, size=2),
    "invert": lambda k: jnp.invert(k),
    "lcm": lambda k, j: jnp.lcm(k, j),
    "ldexp": lambda x, k: jnp.ldexp(x, k),
    "left_shift": lambda k, j: jnp.left_shift(k, j),
    "moveaxis": lambda w: jnp.moveaxis(w, 0, 1),
    "nonzero": lambda x: jnp.nonzero(x > 0, size=2),
    "packbits": lambda k: jnp.packbits(k > 0),
    "pad": lambda w: jnp.pad(w, ((1, 0), (0, 2))),
    "partition": lambda x: jnp.partition(x, 1),
    "permute_dims": lambda w: jnp.permute_dims(w, (1, 0)),
    "piecewise": lambda x: jnp.piecewise(x, [x < 0], [lambda v: -v, lambda v: v * v]),
    "place": lambda x: jnp.place(x, x > 0, np.ones(2), inplace=False),
    "polyfit": lambda x, y: jnp.polyfit(x, y, 1),
    "put": lambda x, y: jnp.put(x, KNOWN, y[:2], inplace=False),
    "put_along_axis": lambda w: jnp.put_along_axis(w, np.array([[0], [1], [2]]), 7.0, 1, inplace=False),
    "quantile": lambda x: jnp.quantile(x, 0.3),
    "percentile": lambda x: jnp.percentile(x, 30),
    "nanpercentile": lambda x: jnp.nanpercentile(x, 30),
    "nanquantile": lambda x: jnp.nanquantile(x, 0.3),
    "ravel_multi_index": lambda k, j: jnp.ravel_multi_index((k, j), (4, 4), mode="clip"),
    "repeat": lambda x: jnp.repeat(x, 2),
    "reshape": lambda w: jnp.reshape(w, (2, 6)),
    "resize": lambda x: jnp.resize(x, (3, 2)),
    "right_shift": lambda k, j: jnp.right_shift(k, j),
    "roll": lambda x, n: jnp.roll(x, n),
    "rollaxis": lambda w: jnp.rollaxis(w, 1),
    "roots": lambda x: jnp.roots(x, strip_zeros=False),
    "select": lambda x, y: jnp.select([x < 0, y < 0], [x, y], 3.0),
    "setdiff1d": lambda x, y: jnp.setdiff1d(x, y, size=2),
    "setxor1d": lambda x, y: jnp.setxor1d(x, y, size=2),
    "split": lambda x: jnp.split(x, [1, 3]),
    "swapaxes": lambda w: jnp.swapaxes(w, 0, 1),
    "take": lambda x, n: jnp.take(x, n),
    "take_along_axis": lambda w: jnp.take_along_axis(w, np.array([[0], [1], [2]]), 1),
    "tensordot": lambda w, x: jnp.tensordot(w, x, 1),
    "tile": lambda w: jnp.tile(w, (2, 1)),
    "union1d": lambda x, y: jnp.union1d(x, y, size=8),
    "unique": lambda x: jnp.unique(x, size=4),
    "unique_all": lambda x: jnp.unique_all(x, size=4),
    "unique_counts": lambda x: jnp.unique_counts(x, size=4),
    "unique_inverse": lambda x: jnp.unique_inverse(x, size=4),
    "unique_values": lambda x: jnp.unique_values(x, size=4),
    "unpackbits": lambda k: jnp.unpackbits(k.astype(np.uint8)),
    "unravel_index": lambda k: jnp.unravel_index(k, (2, 2)),
    "vecmat": lambda v, w: jnp.vecmat(v, w),
    "vectorize": lambda w: jnp.vectorize(jnp.sum, signature="(n)->()")(w),
    "vsplit": lambda w: jnp.vsplit(w, [1]),
    "where": lambda x, y: jnp.where(x > 0, x, y),
}

LINALG: Examples = {
    # The signs of eigenvectors are arbitrary.
    "eigh": lambda m: (jnp.linalg.eigh(m)[0], jnp.linalg.eigh(m)[1] ** 2),
    "lstsq": lambda m, v: jnp.linalg.lstsq(m, v)[0],
    "matrix_power": lambda m: jnp.linalg.matrix_power(m, 3),
    "multi_dot": lambda m, w: jnp.linalg.multi_dot([m, m, w]),
    "tensordot": lambda w, x: jnp.linalg.tensordot(w, x, axes=1),
    "tensorinv": lambda m: jnp.linalg.tensorinv(m, ind=1),
}

NN: Examples = {
    "dot_product_attention": lambda w: jax.nn.dot_product_attention(*(w.reshape(1, 3, 1, 4),) * 3),
    "one_hot": lambda k: jax.nn.one_hot(k, 4),
}

SPECIAL: Examples = {
    "betainc": lambda p: jsp.betainc(1.5, 2.5, p),
    "bessel_jn": lambda s: jsp.bessel_jn(s, v=2),
    "expn": lambda p: jsp.expn(2, p),
    "hyp1f1": lambda p: jsp.hyp1f1(1.5, 2.5, p),
    "hyp2f1": lambda p: jsp.hyp2f1(0.5, 1.5, 2.5, p),
    "multigammaln": lambda p: jsp.multigammaln(p + 3, 2),
    "polygamma": lambda p: jsp.polygamma(1, p),
    "sph_harm_y": lambda s, t: jsp.sph_harm_y(np.array([2]), np.array([1]), s[None], t[None], n_max=2),
    "zeta": lambda p: jsp.zeta(p + 1.5, 2.0),
    "comb": lambda p: jsp.comb(5.0, p),
}

# Updates at known indices (repeated ones too), at run-time indices, and in a slice.
UPDATES: Examples = {
    f"x.at[{where}].{name}": function
    for name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")
    for where, function in {
        "known": lambda x, y, name=name: getattr(x.at[KNOWN], name)(y[:2], **UNIQUE),
        "2:": lambda x, s, name=name: getattr(x.at[2:], name)(s, **UNIQUE),
        "run-time": lambda x, n, s, name=name: getattr(x.at[n], name)(s, **UNIQUE),
        "several run-time": lambda x, i, name=name: getattr(x.at[i], name)(2.5),
    }.items()
} | {
    "x.at[repeated].add": lambda x, v: x.at[TWICE].add(v),
    "x.at[repeated].max": lambda x, v: x.at[TWICE].max(v),
    "x.at[repeated].set": lambda x, v: x.at[TWICE].set(v),
    "x.at[known].apply": lambda x: x.at[KNOWN].apply(jnp.sin, **UNIQUE),
    "x.at[run-time].apply": lambda x, n: x.at[n].apply(jnp.sin, **UNIQUE),
    "x.at[known].get": lambda x: x.at[KNOWN].get(),
    "x.at[run-time].get": lambda x, i: x.at[i].get(mode="fill", fill_value=0.0),
    "x[run-time, run-time]": lambda w, n: w[n, n],
}  # fmt: skip

LAX: Examples = {
    "associative_scan": lambda x: lax.associative_scan(jnp.multiply, x),
    "clamp": lambda x: lax.clamp(-0.5, x, 0.5),
    "cond": lambda x, s: lax.cond(s > 0.5, jnp.sin, jnp.cos, x),
    "conv": lambda w: lax.conv(w[None, None], np.ones((1, 1, 2, 2)), (1, 1), "SAME"),
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x),
    "cummax": lambda x: lax.cummax(x),
    "custom_linear_solve": lambda m, v: lax.custom_linear_solve(
        lambda u: m @ u, v, lambda _, b: jnp.linalg.solve(m, b)),
    "custom_root": lambda s: lax.custom_root(lambda r: r**3 - s, 1.0, lambda f, r: lax.fori_loop(
        0, 30, lambda _, r: r - f(r) / (3 * r * r + 1e-3), r), lambda g, y: y / g(1.0)),
    "dynamic_slice": lambda x, n: lax.dynamic_slice(x, (n,), (2,)),
    "dynamic_update_slice": lambda x, y, n: lax.dynamic_update_slice(x, y[:2], (n,)),
    "fori_loop": lambda x: lax.fori_loop(0, 5, lambda n, c: jnp.sin(c) + n, x),
    "map": lambda x: lax.map(jnp.sin, x),
    "reduce": lambda x: lax.reduce(x, 1.0, lambda a, b: a * b, (0,)),
    "reduce_precision": lambda x: lax.reduce_precision(x, 8, 7),
    "reduce_window": lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "VALID"),
    "scan": lambda x: lax.scan(lambda c, v: (c * jnp.cos(v), c + v), 1.0, x),
    "select_n": lambda k, x, y: lax.select_n(jnp.clip(k, 0, 2), x, y, x * y),
    "sort": lambda x, y: lax.sort((x, y), num_keys=2),
    "switch": lambda x, n: lax.switch(n, [jnp.sin, jnp.cos, jnp.tanh], x),
    "top_k": lambda x: lax.top_k(x, 2),
    "while_loop": lambda x: lax.while_loop(lambda c: jnp.sum(c) < 20, lambda c: c * c + 1, x),
}  # fmt: skip

# Public names that are not functions of numbers.
NOT_FUNCTIONS = {
    "reads and writes files and memory": (
        "frombuffer", "fromfile", "from_dlpack", "fromiter", "fromstring", "load", "save", "savez",
    ),
    "makes constants": (
        "arange", "bartlett", "bernoulli", "blackman", "diag_indices", "diag_indices_from", "empty", "eye", "hamming",
        "hanning", "identity", "indices", "kaiser", "mask_indices", "ones", "tri", "tril_indices", "tril_indices_from",
        "triu_indices", "triu_indices_from", "zeros", "fftfreq", "rfftfreq",
    ),
    "says something about shapes and types": (
        "broadcast_shapes", "can_cast", "einsum_path", "get_scaled_dot_general_config", "iscomplexobj", "isdtype",
        "isrealobj", "isscalar", "issubdtype", "iterable", "ndim", "promote_types", "result_type", "shape", "size",
    ),
    "is about text": ("array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"),
    "has no result of a fixed shape": ("trim_zeros",),
    "is for a GPU": ("scaled_dot_general", "scaled_matmul"),
}  # fmt: skip
