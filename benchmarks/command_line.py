"""How long the command line takes to answer --help, which is to be under half a second.

    python benchmarks/command_line.py [--repeat 5]

For each command the fastest of a few processes, from their start to their end.
"""

import argparse
import subprocess
import sys
import time

from alphagrad.cli.examples import EXAMPLES


def seconds(*words):
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "alphagrad", *words, "--help"], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args()
    for words in ((), *((name,) for name in EXAMPLES)):
        fastest = min(seconds(*words) for _ in range(options.repeat))
        print(f"alphagrad {' '.join([*words, '--help']):15} {fastest:5.2f} s")


if __name__ == "__main__":
    main()
