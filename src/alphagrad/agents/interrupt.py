"""A Ctrl-C that lets the work under way finish."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interrupt:
    """Whether Ctrl-C was pressed."""

    pressed = False


@contextmanager
def deferred_interrupt() -> Iterator[Interrupt]:
    """A context in which the first Ctrl-C is only recorded and the second one interrupts.

    Nothing changes outside of the main thread, which alone gets signals, or if another handler is already installed.
    """
    interrupt = Interrupt()
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is not signal.default_int_handler:
        yield interrupt
        return

    def note(number: int, frame: FrameType | None) -> None:
        interrupt.pressed = True
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupt
    finally:
        signal.signal(signal.SIGINT, usual)
