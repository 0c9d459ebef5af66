"""Damaged and hostile folders of cached kernels."""

import numpy as np

from .script import Script

FUNCTION = """
import hashlib, pathlib
import jax, jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
import graphax as gx

FOLDER = pathlib.Path(os.environ["GRAPHAX_CACHE"])
KERNELS = FOLDER / "kernels"
POINTS = np.linspace(0.1, 0.9, 16)

def function(x):
    return jnp.sin(x * {constant}) * x + jnp.exp(-x)

def attempt(backend):
    want = jax.vmap(jax.jacfwd(function))(POINTS)
    try:
        got = jax.jit(jax.vmap(gx.jacve(function, backend=backend)))(POINTS)
    except gx.NativeError:
        return None if backend == "native" else "NativeError under auto"
    return None if np.allclose(got, want, rtol=1e-9) else f"{{backend}} is wrong: {{got[:3]}} instead of {{want[:3]}}"

def fill():
    # Kernels of this very function, as another process writes them.
    import subprocess
    code = open(__file__).read().split("\\n# ---\\n")[0] + "\\nattempt('native')\\n"
    subprocess.run([sys.executable, "-c", code.replace("__file__", repr(__file__))], check=True)
    return sorted(KERNELS.glob("*.o"))

def hashed(content):
    return hashlib.sha256(content).digest() + content

def parts():
    return "part files stay behind" if list(KERNELS.glob("**/*.part")) else None
# ---
"""
END = """
problem = attempt("{backend}")
finish(16, problem{checks})
"""
FILLED = {
    "truncated": "path.write_bytes(path.read_bytes()[: {n}])",
    "half": "path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])",
    "empty": "path.write_bytes(b'')",
    "junk": "path.write_bytes(os.urandom({n}))",
    "hashed junk": "path.write_bytes(hashed(os.urandom({n})))",
    "hashed nothing": "path.write_bytes(hashed(b''))",
    "hashed half of an object": "path.write_bytes(hashed(path.read_bytes()[32 : {n} + 600]))",
    "hashed text": "path.write_bytes(hashed(b'not an object file'))",
    "hashed ELF header": "path.write_bytes(hashed(path.read_bytes()[32:96]))",
    "unreadable": "path.chmod(0)",
    "folder": "path.unlink(); path.mkdir()",
    "link to nothing": "path.unlink(); path.symlink_to('/nonexistent/file')",
    "link to itself": "path.unlink(); path.symlink_to(path)",
    "pipe": "path.unlink(); os.mkfifo(path)",
}
PREPARED = {
    "read-only folder": "KERNELS.mkdir(parents=True); KERNELS.chmod(0o500)",
    "cache is a file": "FOLDER.write_text('no folder')",
    "kernels is a file": "FOLDER.mkdir(); KERNELS.write_text('no folder')",
    "missing parent": "os.environ['GRAPHAX_CACHE'] = '/proc/nonexistent/cache'",
    "relative folder": "os.environ['GRAPHAX_CACHE'] = '.'; os.chdir(__import__('tempfile').mkdtemp())",
    "odd name": "os.environ['GRAPHAX_CACHE'] = str(FOLDER / 'a b\\u00e9\\n%s')",
}
FULL_DISK = {
    "os.replace fails": "os.replace = refuse",
    "write fails": "tempfile.NamedTemporaryFile = lambda *a, **k: Full(real(*a, **k))",
    "mkstemp fails": "tempfile.NamedTemporaryFile = refuse; tempfile.mkstemp = refuse",
    "os.write fails": "os.write = refuse; tempfile.NamedTemporaryFile = lambda *a, **k: Full(real(*a, **k))",
}
REFUSAL = """
import errno, tempfile

def refuse(*args, **kwargs):
    raise OSError(errno.ENOSPC, "No space left on device")

real = tempfile.NamedTemporaryFile

class Full:
    def __init__(self, file):
        self.file = file

    def __enter__(self):
        self.file.__enter__()
        return self

    def __exit__(self, *error):
        return self.file.__exit__(*error)

    def __getattr__(self, name):
        return refuse if name == "write" else getattr(self.file, name)

"""
SHARING = """
import subprocess
code = open(__file__).read().split("\\n# ---\\n")[0] + "\\nsys.exit(1 if attempt('native') else 0)\\n"
code = code.replace("__file__", repr(__file__))
running = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
codes = [process.wait() for process in running]
finish(64, f"processes ended with {codes}" if any(codes) else parts())
"""


def attempts(seed: int, number: int) -> list[Script]:
    """One state of the folder and one backend."""
    rng = np.random.default_rng((seed, number, 8))
    states = [*FILLED, *PREPARED, *FULL_DISK, "planted, writable", "planted, sticky", "leftovers", "sharing"]
    state = states[number % len(states)]
    backend = ("native", "auto")[number // len(states) % 2]
    head = FUNCTION.format(constant=round(1 + rng.random(), 6))
    end = END.format(backend=backend, checks=" or parts()")
    label = f"{state}, {backend}"
    if state in FILLED:
        change = FILLED[state].format(n=int(rng.integers(0, 400)))
        return [Script(f"{head}for path in fill():\n    {change}\n{end}", label, 30)]
    if state in PREPARED:
        return [Script(head + PREPARED[state] + END.format(backend=backend, checks=""), label)]
    if state in FULL_DISK:
        return [Script(head + REFUSAL + FULL_DISK[state] + end, label)]
    if state.startswith("planted"):
        return [Script(head + _planted(0o777 if state.endswith("writable") else 0o1777) + end, label)]
    if state == "leftovers":
        # Files of a killed process. The library may remove them, but need not.
        return [
            Script(
                head
                + "KERNELS.mkdir(parents=True)\n(KERNELS / 'tmpx.part').touch()"
                + END.format(backend=backend, checks=""),
                label,
            )
        ]
    return [Script(head + SHARING, label)]


def _planted(mode: int) -> str:
    """The kernel of another function under the name of this one, in a folder that everyone can write to."""
    return f"""
mine = fill()
source = open(__file__).read()
planted = __file__ + ".other.py"
open(planted, "w").write(source.replace("+ jnp.exp(-x)", "+ jnp.exp(-3 * x)"))
own, __file__ = __file__, planted
others = [path for path in fill() if path not in mine]
__file__ = own
for other in others:
    # The two functions differ in a number, so their kernels are about as large.
    nearest = min(mine, key=lambda path: abs(path.stat().st_size - other.stat().st_size))
    nearest.write_bytes(other.read_bytes())
KERNELS.chmod({mode:#o})
FOLDER.chmod({mode:#o})
"""
