"""Examples that end the help of each command."""

from typing import Any

from typer.core import TyperCommand

EXAMPLES = {
    "tasks": ("alphagrad tasks", "alphagrad tasks --json"),
    "search": (
        "alphagrad search RoeFlux_1d --simplify --budget 0.5",
        "alphagrad search mymodule:f --args mymodule:make_args --save order.json",
        "alphagrad search RobotArm_6DOF --counting raw --certified --plot history.png",
        "alphagrad search RoeFlux_1d --minimize runtime",
    ),
    "table": (
        "alphagrad table",
        "alphagrad table RoeFlux_1d RobotArm_6DOF --budget 0.5",
        "alphagrad table MLP --counting raw --json",
    ),
    "show": (
        "alphagrad show RoeFlux_1d --open",
        "alphagrad show mymodule:f --args mymodule:make_args --order rev --order order.json",
        "alphagrad show RoeFlux_1d --order rev --step 40 --out roe.svg",
    ),
    "report": (
        "alphagrad report RoeFlux_1d RobotArm_6DOF --open",
        "alphagrad report RoeFlux_1d --timings bench.json --out roe.html",
    ),
    "play": (
        "alphagrad play RoeFlux_1d",
        "alphagrad play RoeFlux_1d --agent runs/alphazero-RoeFlux_1d-0 --json",
    ),
    "train": (
        "alphagrad train alphazero RoeFlux_1d --preset small --seconds 600",
        "alphagrad train ppo RoeFlux_1d RobotArm_6DOF --iterations 100 --folder runs/two",
        "alphagrad train alphazero --joint --generated 8 --seconds 3600 --set environments=64",
    ),
    "bench": (
        "alphagrad bench RoeFlux_1d",
        "alphagrad bench mymodule:f --args mymodule:make_args --plot f.png",
        "alphagrad bench RoeFlux_1d --figures --orders rev,best --save roe.json --plot roe.png",
        "alphagrad bench --check regressions",
    ),
}  # fmt: skip
FIRST_STEPS = tuple(EXAMPLES[name][0] for name in ("tasks", "search", "show")) + EXAMPLES["search"][1:2]


def write_examples(formatter: Any, lines: tuple[str, ...]) -> None:
    """A section of the help, in which lines to copy are not wrapped."""
    with formatter.section("Examples"):
        for line in lines:
            formatter.write(f"  {line}\n")


class Command(TyperCommand):
    """A command whose help ends with its examples."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        write_examples(formatter, EXAMPLES[str(self.name)])
