"""The processors that kernels run on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class Machine(ABC):
    """A kind of processor: how to compile code for it, and how to make that code callable.

    Attributes:
        platform: its name in XLA.
        handler: the file with the code that XLA calls.
    """

    platform: str
    handler: str

    @property
    @abstractmethod
    def identity(self) -> str:
        """Everything that compiled code depends on, apart from its source."""

    @abstractmethod
    def given(self) -> dict[str, int]:
        """The addresses that the handler imports, by name."""

    @abstractmethod
    def compiled(self, code: str) -> bytes:
        """Compile a module of LLVM's language to the form that is stored on disk."""

    @abstractmethod
    def opened(self, content: bytes) -> tuple[Any, int]:
        """Load compiled code. Returns an object that keeps it loaded, and what the handler calls."""

    @abstractmethod
    def close(self, opened: Sequence[Any]) -> None:
        """Release codes that nothing will call again."""
