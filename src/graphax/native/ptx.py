"""Code for NVIDIA GPUs: compiles LLVM's language to PTX, which the driver of the GPU compiles further."""

from functools import cache
from typing import Any

# GPUs run code written for older ones, and not every LLVM knows the latest.
_OLDEST, _LATEST = 70, 90


def target(capability: int) -> str:
    """The target for the compute capability of a GPU, times ten; empty if the GPU is too old."""
    return f"sm_{min(capability, _LATEST)}" if capability >= _OLDEST else ""


@cache
def _machine(target: str) -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple = "nvptx64-nvidia-cuda"
    return llvm.Target.from_triple(triple).create_target_machine(cpu=target, opt=3)


def ptx(code: str, target: str) -> bytes:
    """Compile a module of LLVM's language."""
    import llvmlite.binding as llvm

    machine = _machine(target)
    module = llvm.parse_assembly(code)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    return machine.emit_assembly(module).encode()
