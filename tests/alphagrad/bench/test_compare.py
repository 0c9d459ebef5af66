import jax.numpy as jnp
import numpy as np
import pytest

import alphagrad
import graphax as gx
from alphagrad.bench.advice import advice
from alphagrad.bench.case import Case
from alphagrad.bench.measure import Measurement
from alphagrad.bench.own_function import task_of
from alphagrad.runtime.timing import Timing


def f(x, n):
    return jnp.sin(x) * x[::-1] ** n


def loss(x):
    return jnp.sum(jnp.sin(x))


def rows(function, args, compile_seconds=0.1, **medians):
    case = Case(task_of(f"mine:{function.__name__}", function, args), 1)
    return [
        Measurement(case, name.replace("_", "/"), Timing(1e-3 * ms, 1e-3 * ms, 1e-3 * ms, 1), compile_seconds * ms)
        for name, ms in medians.items()
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("medians", "said"),
    [
        ({"jacfwd": 9, "jacrev": 5, "auto_auto": 1}, "use gx.jacve(f); it is 5.0 times as fast as jax.jacrev"),
        ({"jacfwd": 2, "auto_auto": 1.05, "rev_auto": 1}, "use gx.jacve(f); it is 1.9 times as fast as jax.jacfwd"),
        (
            {"jacfwd": 4, "auto_auto": 2, "rev_native": 1},
            'use gx.jacve(f, order="rev", backend="native"); it is 4.0 times as fast as jax.jacfwd',
        ),
        (
            {"jacfwd": 4, "auto_auto": 2, "best_auto": 1},
            "use gx.jacve(f, order=alphagrad.search(f, ...).order); it is 4.0 times as fast as jax.jacfwd",
        ),
        ({"jacfwd": 1, "auto_auto": 1.05}, "stay with jax.jacfwd; gx.jacve(f) takes as long, give or take 10 %"),
        ({"jacfwd": 1, "auto_auto": 3}, "stay with jax.jacfwd; gx.jacve(f) takes 3.0 times as long"),
    ],
)
def test_advice(medians, said):
    assert advice(rows(f, (np.ones(3), 2), **medians)) == (f"mine:f, batch 1: {said}",)


def test_advice_on_gradients_and_long_compilations():
    (said,) = advice(rows(loss, (np.ones(3),), jacrev=1, auto_auto=2))
    assert "stay with jax.grad;" in said
    measured = rows(f, (np.ones(3), 2), jacfwd=4) + rows(f, (np.ones(3), 2), compile_seconds=8, auto_auto=1)
    case = measured[0].case
    same = [Measurement(case, row.contender, row.timing, row.compile_seconds) for row in measured]
    assert advice(same)[0].endswith(", and takes 7.6 s longer to compile")


def test_without_times_of_both_sides_there_is_no_advice():
    assert advice(rows(f, (np.ones(3), 2), jacfwd=1)) == ()


def test_compare(tmp_path, monkeypatch):
    monkeypatch.setenv("ALPHAGRAD_CACHE", str(tmp_path))
    seen: list[str] = []
    found = alphagrad.compare(
        f, np.array([0.1, 0.2, 0.3]), 2, batch=(1, 4), orders=("auto", "best"), repeat=2, budget=0.1,
        progress=seen.append,
    )  # fmt: skip
    contenders = {"floor", "jacfwd", "jacrev", "auto/auto", "best/auto", "auto/native", "auto/xla"}
    assert {row.contender for row in found.measurements} == contenders
    assert {row.case.batch for row in found.measurements} == {1, 4}
    assert all(row.error is None or row.error < 1e-5 for row in found.measurements)
    assert len(found.advice) == 2
    assert str(found).endswith("\n".join(found.advice))
    assert found.as_dict()["advice"] == list(found.advice)
    assert any("compiling jacfwd" in doing for doing in seen)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch": 0}, "batch must be a whole number, 1 or more"),
        ({"repeat": 0}, "repeat must be a whole number"),
        ({"orders": ["fastest"]}, "unknown order 'fastest'"),
        ({"backend": "cuda"}, "unknown backend 'cuda'"),
    ],
)
def test_invalid_arguments_are_refused(options, message):
    with pytest.raises(gx.GraphaxError, match=message):
        alphagrad.compare(f, np.ones(3), 2, **options)
