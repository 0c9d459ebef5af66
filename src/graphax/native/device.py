"""Arithmetic for GPU threads, which have no C library. Longer functions are in ``device.ll``."""

import struct
from functools import cache
from pathlib import Path
from string import Template

from .emit import Emitter, Value, fma
from .formats import FORMATS, INFINITY

# The inverse of a number, and of its square root, to a unit in the last place.
RECIPROCAL, INVERSE_ROOT = "llvm.nvvm.rcp.approx.ftz.f", "llvm.nvvm.rsqrt.approx.ftz.f"
# Below this, errors of square roots would be denormal.
_TINY = 2.0**-80
# The number of bits of 2/π after the binary point: as many as the largest number needs, and some more.
_BITS_OF_TWO_BY_PI = 1280
_TWO_BY_PI = int(
    "a2f9836e4e441529fc2757d1f534ddc0db6295993c439041fe5163abdebbc561b7246e3a424dd2e006492eea09d1921c"
    "fe1deb1cb129a73ee88235f52ebb4484e99c7026b45f7e413991d639835339f49c845f8bbdf9283b1ff897ffde05980f"
    "ef2f118b5a0a6d1f6d367ecf27cb09b74f463f669e5fea2d7527bac7ebe5f17b3d0739f78a5292ea6bfb5fb11f8d5d08"
    "56033046fc7b6babf0cfbc209af4361d",
    16,
)


class ThreadEmitter(Emitter):
    """Writes the code of a GPU thread. Unlike the lanes of a vector, threads can jump independently."""

    def divide(self, a: Value, b: Value) -> Value:
        return division(a, b)

    def sqrt(self, x: Value) -> Value:
        return sqrt(x)

    def remainder(self, x: Value, y: Value) -> Value:
        self.declarations.update(_functions()[f"remainder.{x.kind}"])
        return self.by_lane(f"remainder.{x.kind}", x, y, declared=True)

    def reduced(self, a: Value, far: Value, angle: Value, quadrant: Value) -> tuple[Value, Value]:
        found = self.rarely(far & (a < INFINITY), (angle, quadrant), lambda: far_quadrant(a))
        return found[0], found[1]


def far_quadrant(a: Value) -> tuple[Value, Value]:
    """The angle r and the quadrant q with a = r + q·π/2, for an a so large that π needs more digits."""
    emitter, wide = a.emitter, a if a.kind == "f64" else a.emitter.cast("fpext", a, "f64")
    emitter.declarations.update(_functions()["quadrant"])
    both = [
        emitter.write("pair", f"call {{double, i64}} @quadrant(double {emitter.lane(wide, lane).text})").text
        for lane in range(emitter.lanes)
    ]
    angle, quadrant = (
        emitter.joined([emitter.write(kind, f"extractvalue {{double, i64}} {one}, {n}") for one in both])
        for n, kind in enumerate(("f64", "i64"))
    )
    if a.kind == "f64":
        return angle, quadrant
    return emitter.cast("fptrunc", angle, "f32"), emitter.cast("trunc", quadrant, "i32")


def quotient(a: Value, b: Value) -> Value:
    """a / b by an inverse, which all quotients by b share. The last bit may be wrong."""
    factor, _, inverse = _inverted(b)
    return (a * factor) * inverse


def division(a: Value, b: Value) -> Value:
    """a / b, correctly rounded, without the jump that a GPU's own division has in single precision."""
    emitter = a.emitter
    if a.kind != "f32":
        return emitter.binary("fdiv", a, b)
    factor, scaled, inverse = _inverted(b)
    error = fma(-scaled, inverse, 1.0)
    # The inverses of zero and of infinity need no correction.
    better = emitter.select(emitter.call("fabs", error) < 1.0, fma(error, inverse, inverse), inverse)
    numerator = a * factor
    found = numerator * better
    rest = fma(-scaled, found, numerator)
    improves = rest.differs(0.0) & (emitter.call("fabs", rest) < INFINITY)
    return emitter.select(improves, fma(rest, better, found), found)


def sqrt(x: Value) -> Value:
    """The square root, without the jump that a GPU's own has in single precision."""
    emitter = x.emitter
    if x.kind != "f32":
        return emitter.call("sqrt", x)
    small = x < _TINY
    raised = emitter.select(small, x * 2.0**64, x)
    inverse = emitter.by_lane(INVERSE_ROOT, raised)
    found = raised * inverse
    better = fma(fma(-found, found, raised), 0.5 * inverse, found)
    lowered = emitter.select(small, better * 2.0**-32, better)
    return emitter.select(x.equals(0.0) | x.equals(INFINITY), x, lowered)


def _inverted(b: Value) -> tuple[Value, Value, Value]:
    """A power of two, b times this power, and the inverse of the product, to a unit in the last place.

    Without the power the inverse could be infinite or denormal where quotients are neither.
    """
    emitter, form = b.emitter, FORMATS[b.kind]
    far, shift = 2.0 ** (form.bias - 27), 2.0 ** (form.bias // 2)
    size = emitter.call("fabs", b)
    factor = emitter.select(size > far, 1 / shift, emitter.select(size < 1 / far, shift, emitter.value(b.kind, 1.0)))
    scaled = b * factor
    if b.kind == "f32":
        return factor, scaled, emitter.by_lane(RECIPROCAL, scaled)
    return factor, scaled, emitter.binary("fdiv", emitter.value("f64", 1.0), scaled)


@cache
def _functions() -> dict[str, list[str]]:
    """Functions that replace a C library on a GPU, in LLVM's language, by name.

    Each is a list of declarations, followed by the function itself.
    """
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
