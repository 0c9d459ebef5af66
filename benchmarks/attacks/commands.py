"""Commands from the documentation, in a pipe and with the available memory.

A command may take long, but it must say so: it prints a line at least once a minute. It must not end in a traceback,
and it must refuse impossible requests with one line.
"""

import numpy as np

from .script import Script

# The seconds that a command is watched, and that it may print nothing: a minute, and the time to import.
WATCHED, SILENT = 100.0, 75.0
COMMANDS = (
    "train ppo RoeFlux_1d --preset small --seconds 600",
    "train alphazero RoeFlux_1d --preset small --seconds 600 --set schedule=150",
    "train ppo RobotArm_6DOF --preset paper --seconds 60",
    "train alphazero RoeFlux_3d --preset paper --seconds 60",
    "search RoeFlux_1d --counting raw --budget {seconds}",
    "search RoeFlux_1d --counting raw --certified",
    "search TransformerEncoder --budget {seconds}",
    "table --budget {seconds}",
    "bench RobotArm_6DOF --batch 512 --backend native",
    "play RoeFlux_1d",
)
RUN = """
import queue, subprocess, tempfile, time

process = subprocess.Popen(
    [sys.executable, "-m", "alphagrad", *{words!r}], cwd=tempfile.mkdtemp(), text=True, stdin=subprocess.DEVNULL,
    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={{**os.environ, "ALPHAGRAD_CACHE": tempfile.mkdtemp()}},
)
said, lines = queue.Queue(), []
threading.Thread(target=lambda: [said.put(line) for line in process.stdout], daemon=True).start()
start = last = time.monotonic()
longest = 0.0
while time.monotonic() - start < {watched} and (process.poll() is None or not said.empty()):
    try:
        lines.append(said.get(timeout=0.2))
        last = time.monotonic()
    except queue.Empty:
        longest = max(longest, time.monotonic() - last)
code = process.poll()
process.kill()
text = "".join(lines)
problem = None
if "Traceback" in text:
    problem = "ends in a traceback: " + lines[-1].strip()
elif longest > {silent}:
    problem = f"says nothing for {{longest:.0f}} s"
elif code not in (None, 0, 2):
    problem = f"ends with {{code}}: {{text[-300:]}}"
elif code == 2 and not any(line.startswith("alphagrad: ") for line in lines):
    problem = f"refuses without a line that says why: {{text[-300:]}}"
finish(0, problem)
"""


def attempts(seed: int, number: int) -> list[Script]:
    """One command."""
    rng = np.random.default_rng((seed, number, 10))
    command = COMMANDS[number % len(COMMANDS)].format(seconds=round(float(rng.uniform(0.1, 3.0)), 2))
    text = RUN.format(words=command.split(), watched=WATCHED, silent=SILENT)
    return [Script(text, command.split(" --")[0], 2 * WATCHED)]
