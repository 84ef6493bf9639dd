"""Ctrl-C, SIGTERM and SIGHUP end a command alike: nothing half done is left, one line, exit code 128 + the signal's.

Only the standard library is imported here: the command takes signals before it imports anything that takes long.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fssgd._support.atomic_files import remove_unfinished

WORDS = {"SIGINT": "Interrupted.", "SIGTERM": "Terminated.", "SIGHUP": "Hung up."}
ENDING = {getattr(signal, name): text for name, text in WORDS.items() if hasattr(signal, name)}
GRACE = 1.0  # seconds in which a command unwinds, or else is ended as it is


class Ended(KeyboardInterrupt):
    """A signal said that the command is to end; what clears up after Ctrl-C does so after this."""

    def __init__(self, number: int) -> None:
        super().__init__(ENDING[signal.Signals(number)])
        self.code = 128 + number


def take_signals() -> None:
    """Let signals end this process at once, and one that is deaf to them a little later.

    A signal's handler runs between two instructions of Python: not while a library waits for rows that do not come.
    """
    for number in _heeded():
        signal.signal(number, _end)
    if os.name == "posix" and threading.current_thread() is threading.main_thread():
        noticed, told = os.pipe()
        os.set_blocking(told, False)
        signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        threading.Thread(target=_end_the_deaf, args=(noticed,), daemon=True).start()


@contextmanager
def ended_by_signals() -> Iterator[None]:
    """Raise :class:`Ended` where a signal arrives, so that what is open is closed and cleared up."""
    ended = False

    def end(number: int, frame: Any) -> None:
        nonlocal ended
        if not ended:
            ended = True
            raise Ended(number)
        if number == signal.SIGINT:  # Ctrl-C again: now
            _end(number)
        # SIGHUP comes from the terminal and from the shell: the second is not to disturb the clearing up

    before = {number: signal.signal(number, end) for number in _heeded()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def leave_if_ended(code: object) -> None:
    """End the process if a signal has ended the command: a thread may wait for rows yet, and Python for it."""
    if isinstance(code, int) and code - 128 in ENDING:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError, AttributeError):  # closed, or never open
                stream.flush()
        os._exit(code)


def _heeded() -> list[signal.Signals]:
    """Return the signals to take: not those that whoever started this has it ignore, as nohup does."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [number for number in ENDING if signal.getsignal(number) not in (signal.SIG_IGN, None)]


def _end(number: int, frame: Any = None) -> None:
    remove_unfinished()
    with suppress(OSError):
        os.write(2, f"{ENDING[signal.Signals(number)]}\n".encode())
    os._exit(128 + number)


def _end_the_deaf(noticed: int) -> None:
    while (number := os.read(noticed, 1)[0]) not in ENDING:
        pass
    time.sleep(GRACE)
    _end(number)
