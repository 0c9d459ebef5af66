"""Threads and processes that compile, load, search and run new kernels at the same time."""

import numpy as np

from .script import Script

THREADS = 8
FUNCTION = """
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
import graphax as gx

def function(n):
    # Constants of their own make every kernel a new one.
    return lambda x: jnp.sin(x * (n + 1.5)) * x + jnp.exp(-x) / (x + n + 2)

POINTS = np.linspace(0.1, 0.9, 16)

def problem_of(got, n, name):
    want = jax.vmap(jax.jacfwd(function(n)))(POINTS)
    return None if np.allclose(got, want, rtol=1e-9) else f"{name} {n} is wrong"
"""
TOGETHER = """
problems, compared, gate = [], [], threading.Barrier({threads})

def attack(n):
    gate.wait()
    for m in range({rounds}):
        number = {seed} + n * {apart} + m
        try:
            problem = {work}
        except BaseException as error:
            problem = f"{{type(error).__name__}}: {{error}}"
        compared.append(16)
        if problem:
            problems.append(problem)

workers = [threading.Thread(target=attack, args=(n,)) for n in range({threads})]
[worker.start() for worker in workers]
[worker.join() for worker in workers]
finish(sum(compared), problems[0] if problems else None)
"""
WORK = {
    "kernels": 'problem_of(jax.jit(jax.vmap(gx.jacve(function(number), backend="native")))(POINTS), number, "kernel")',
    "one kernel": 'problem_of(jax.jit(jax.vmap(gx.jacve(function(3), backend="native")))(POINTS), 3, "kernel")',
    "auto": 'problem_of(jax.jit(jax.vmap(gx.jacve(function(number))))(POINTS), number, "auto")',
    "eager": 'problem_of(np.array([gx.jacve(function(number))(x) for x in POINTS]), number, "eager")',
    "planning": 'problem_of(jax.vmap(gx.jacve(function(number), order="markowitz"))(POINTS), number, "plan")',
    "searches": "search(number)",
    "shared jit": 'problem_of(SHARED(POINTS), 3, "shared")',
}
SEARCH = """
import alphagrad

def search(n):
    result = alphagrad.search(function(n), 0.5, budget=alphagrad.Budget(evaluations=50), record=n % 2 == 0)
    got = jax.vmap(gx.jacve(function(n), order=result.order))(POINTS)
    return problem_of(got, n, "search")

SHARED = jax.jit(jax.vmap(gx.jacve(function(3), backend="native")))
"""
SPAWNED = """
import multiprocessing

def child(n):
    return problem_of(jax.jit(jax.vmap(gx.jacve(function(n % 2), backend="native")))(POINTS), n % 2, "child")

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        problems = [p for p in pool.map(child, range({seed}, {seed} + 4)) if p]
    finish(64, problems[0] if problems else None)
"""
FORKED = """
import warnings
warnings.simplefilter("ignore")
import graphax as gx
pid = os.fork()
{body}
problem = problem_of(jax.jit(jax.vmap(gx.jacve(function({seed}), backend="native")))(POINTS), {seed}, "forked")
if pid == 0:
    sys.stdout.flush()
    os._exit(3 if problem else 0)
status = os.waitpid(pid, 0)[1]
finish(32, problem or (f"the forked child ended with {{os.waitstatus_to_exitcode(status)}}" if status else None))
"""


def attempts(seed: int, number: int) -> list[Script]:
    """One script. The kinds of work take turns."""
    rng = np.random.default_rng((seed, number, 7))
    first = int(rng.integers(1000))
    kinds = [*WORK, "mixed", "spawned", "forked"]
    kind = kinds[number % len(kinds)]
    if kind == "spawned":
        return [Script(FUNCTION + SPAWNED.format(seed=first), kind, 120)]
    if kind == "forked":
        return [Script(FORKED.format(seed=first, body=FUNCTION), kind)]
    names = list(WORK)
    work = WORK[kind] if kind in WORK else f"[{', '.join(f'lambda: {WORK[n]}' for n in names)}][n % {len(names)}]()"
    rounds, apart = (1, 100) if kind in ("searches", "mixed") else (2, int(rng.choice([0, 1, 100])))
    together = TOGETHER.format(threads=THREADS, rounds=rounds, seed=first, work=work, apart=apart)
    needs_search = kind in ("searches", "mixed", "shared jit")
    return [Script(FUNCTION + (SEARCH if needs_search else "") + together, f"{THREADS} threads: {kind}", 120)]
