"""What the package's commands have in common on a terminal: bounded numbers, the token's file, progress and how they end."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from typing import Callable, Iterator, TypeVar

from saccade.bulk.failures import BulkError
from saccade.connection import is_url

T = TypeVar("T")


def bounded(kind: type, least: float, most: float):  # type: ignore[no-untyped-def]
    """A kind of argument: a number within bounds."""

    def parse(text: str) -> float:
        value = kind(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"is {text}; expected {least:g} to {most:g}")
        return value

    parse.__name__ = "number"
    return parse


def address(advice: str = "; --tls connects with TLS") -> Callable[[str], str]:
    """A kind of argument: the address of a daemon, HOST:PORT or another of gRPC's forms. gRPC itself takes port 443 if there is
    none. `advice` follows what is expected."""

    def parse(text: str) -> str:
        if is_url(text) or not (text.startswith("unix:") or all(_has_port(one) for one in text.split(","))):
            raise argparse.ArgumentTypeError(
                f"is {text}; expected HOST:PORT, such as 127.0.0.1:8001, without http:// or https://{advice}"
            )
        return text

    return parse


def _has_port(text: str) -> bool:
    host, _, port = text.rpartition(":")
    return bool(host) and port.isascii() and port.isdigit() and 1 <= int(port) <= 65535


def token_of(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except (OSError, ValueError) as error:
        raise BulkError(f"--token-file {path} cannot be read: {error}") from None


class Teller:
    """Progress on standard error: one line that changes on a terminal, a line a minute elsewhere."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._told = 0.0

    def tell(self, line: str, seconds: float) -> None:
        """`seconds` is the time since the beginning."""
        if self._terminal:
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
        elif seconds - self._told >= 60:
            self._told = seconds
            print(line, file=sys.stderr, flush=True)

    def end(self) -> None:
        """Removes the line of a terminal."""
        if self._terminal:
            print("\r\033[K", end="", file=sys.stderr)


class _Lines(logging.Handler):
    """Writes log records between the lines of progress."""

    def __init__(self, name: str, teller: Teller) -> None:
        super().__init__(logging.INFO)
        self._name = name
        self._teller = teller

    def emit(self, record: logging.LogRecord) -> None:
        self._teller.end()
        print(f"saccade {self._name}: {record.getMessage()}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def _logged(name: str, teller: Teller) -> Iterator[None]:
    """Writes what the logger saccade.NAME logs meanwhile."""
    log, lines = logging.getLogger(f"saccade.{name}"), _Lines(name, teller)
    level = log.level
    log.setLevel(logging.INFO)
    log.addHandler(lines)
    try:
        yield
    finally:
        log.removeHandler(lines)
        log.setLevel(level)


def run_resumable(name: str, act: Callable[[Teller], T]) -> T | None:
    """Runs a command that goes on where it stopped when it is given again. Returns None if it failed or was interrupted,
    which it has then said."""
    teller = Teller()
    result, said = None, ""
    try:
        with _logged(name, teller):
            result = act(teller)
    except BulkError as error:
        said = str(error)
    except KeyboardInterrupt:
        said = "interrupted; the same command goes on where it stopped"
    teller.end()
    if said:
        print(f"saccade {name}: {said}", file=sys.stderr)
    return result
