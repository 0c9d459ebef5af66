"""What kernels run on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any


class Machine(ABC):
    """A kind of processor: how code for it is made, and becomes something that can be called.

    Attributes:
        platform: its name in XLA.
        handler: the file with the code that XLA calls.
    """

    platform: str
    handler: str

    @property
    @abstractmethod
    def identity(self) -> str:
        """What compiled code depends on, apart from the code that it is made of."""

    @abstractmethod
    def given(self) -> dict[str, int]:
        """Addresses that the handler asks for by name."""

    @abstractmethod
    def compiled(self, code: str) -> bytes:
        """A module of LLVM's language, as it is kept on disk."""

    @abstractmethod
    def opened(self, content: bytes) -> tuple[Any, int]:
        """Compiled code that is ready to run: what keeps it so, and what the handler calls."""

    @abstractmethod
    def close(self, opened: Sequence[Any]) -> None:
        """Give up codes that nothing will call again."""
