"""How long the command line takes from the prompt to its last line, for commands that should be quick.

    python benchmarks/command_line.py [--repeat 5]

For each command it prints the time of the fastest of a few processes, and the promised time. The exit code is 1 if a
promise is broken. The search is compiled beforehand, which happens once per installation.
"""

import argparse
import os
import subprocess
import sys
import time

from alphagrad.cli.examples import EXAMPLES

HELP, ANSWER, SEARCH = 0.5, 1.0, 1.5
COMPLETION = {"COMP_WORDS": "alphagrad search Roe", "COMP_CWORD": "2", "_ALPHAGRAD_COMPLETE": "complete_bash"}
COMMANDS = {
    **{f"{name} --help".strip(): HELP for name in ("", *EXAMPLES)},
    "--version": ANSWER,
    "tasks": ANSWER,
    "search RoeFlux_1d --budget 0.5": SEARCH,
}


def seconds(command: str, environment: dict[str, str]) -> float:
    words = [sys.executable, "-c", "import sys; sys.argv[0] = 'alphagrad'; from alphagrad.__main__ import main; main()"]
    start = time.perf_counter()
    subprocess.run([*words, *command.split()], check=False, capture_output=True, env=os.environ | environment)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    seconds("search RoeFlux_1d --budget 0.1", {})
    broken = 0
    asked = [(command, limit, {}) for command, limit in COMMANDS.items()] + [("(completion)", ANSWER, COMPLETION)]
    for command, limit, environment in asked:
        typed = "" if environment else command
        fastest = min(seconds(typed, environment) for _ in range(options.repeat))
        broken += fastest > limit
        print(f"alphagrad {command:32} {fastest:5.2f} s of {limit:g}", flush=True)
    sys.exit(bool(broken))


if __name__ == "__main__":
    main()
