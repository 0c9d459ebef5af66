"""Functions for the threads of a GPU, which has no C library: ``device.ll``."""

import struct
from functools import cache
from pathlib import Path
from string import Template

from .emit import Value
from .formats import FORMATS

# The bits of 2/π behind the point, as many as the largest number has and some more.
_BITS_OF_TWO_BY_PI = 1280
_TWO_BY_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6babf0cfbc209af4361d",
    16,
)


def quadrant(a: Value) -> tuple[Value, Value]:
    """The angle r and the quadrant q with a = r + q·π/2, for an a that is so large that π needs more digits."""
    emitter, wide = a.emitter, a if a.kind == "f64" else a.emitter.cast("fpext", a, "f64")
    emitter.declarations.update(_functions()["quadrant"])
    both = emitter.write("pair", f"call {{double, i64}} @quadrant(double {wide.text})").text
    angle = emitter.write("f64", f"extractvalue {{double, i64}} {both}, 0")
    quadrant = emitter.write("i64", f"extractvalue {{double, i64}} {both}, 1")
    if a.kind == "f64":
        return angle, quadrant
    return emitter.cast("fptrunc", angle, "f32"), emitter.cast("trunc", quadrant, "i32")


def remainder(x: Value, y: Value) -> Value:
    x.emitter.declarations.update(_functions()[f"remainder.{x.kind}"])
    return x.emitter.by_lane(f"remainder.{x.kind}", x, y, declared=True)


@cache
def _functions() -> dict[str, list[str]]:
    """What a GPU has no C library for, in LLVM's language by name: declarations, then the function itself."""
    text = Path(__file__).with_name("device.ll").read_text(encoding="utf-8")
    quadrant, rest = text.split("; ----\n")
    # 64 zeros, then the bits of 2/π.
    words = [0, *((_TWO_BY_PI >> shift) & (2**64 - 1) for shift in range(_BITS_OF_TWO_BY_PI - 64, -1, -64))]
    table = ", ".join(f"i64 {word}" for word in words)
    found = {"quadrant": Template(quadrant).substitute(words=len(words), table=table)}
    for kind, scalar in (("f32", "float"), ("f64", "double")):
        form = FORMATS[kind]
        raising = 2 * form.mantissa + 20
        constants = {
            "tiny": 2.0 ** (60 - form.bias), "smallest": form.smallest,
            "raise": 2.0**raising, "lower": 2.0**-raising,
        }  # fmt: skip
        literals = {name: "0x" + struct.pack(">d", value).hex() for name, value in constants.items()}
        found[f"remainder.{kind}"] = Template(rest).substitute(
            literals, kind=kind, float=scalar, bits="i32" if kind == "f32" else "i64", mantissa=form.mantissa,
            mask=2**form.mantissa - 1, raising=raising,
        )  # fmt: skip
    return {name: _apart(text) for name, text in found.items()}


def _apart(text: str) -> list[str]:
    lines = text.splitlines()
    declared = [line for line in lines if line.startswith("declare")]
    return [*declared, "\n".join(line for line in lines if line not in declared)]
