import signal
import threading

import pytest

from alphagrad.agents.interrupt import deferred_interrupt

pytestmark = pytest.mark.usefixtures("interruptible")


def test_the_first_interrupt_is_noted_and_the_second_interrupts():
    before = signal.getsignal(signal.SIGINT)
    with deferred_interrupt() as interrupt:
        assert not interrupt.pressed
        signal.raise_signal(signal.SIGINT)
        assert interrupt.pressed
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_the_usual_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with deferred_interrupt():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


def test_other_handlers_are_left_alone():
    heard = []
    before = signal.signal(signal.SIGINT, lambda *_: heard.append(1))
    try:
        with deferred_interrupt() as interrupt:
            signal.raise_signal(signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [1]
    assert not interrupt.pressed


def test_other_threads_are_left_alone():
    noted = []

    def work():
        with deferred_interrupt() as interrupt:
            noted.append(interrupt.pressed)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert noted == [False]
