"""Failures that end a job. A failure of one input is a row of the output instead."""

from __future__ import annotations

import errno
import os
import socket


class BulkError(Exception):
    """The job cannot go on. The text says what was wrong, what was expected and what to do."""


def is_disk_full(error: OSError) -> bool:
    return error.errno in (errno.ENOSPC, errno.EDQUOT)


def not_written(what: str, path: str, error: OSError) -> BulkError:
    """Describes a failed write to `path`. A full disk is named by its topmost folder and its machine: the workers of
    a cluster may see different disks under one path."""
    why, advice = error.strerror or str(error), "mend that"
    if is_disk_full(error):
        why += f" on the disk at {_disk(path)} of {socket.gethostname()}"
        advice = "make room there"
    return BulkError(
        f"{what} cannot be written to {path}: {why}; {advice}, and repeat the command: it goes on where it stopped"
    )


def _disk(path: str) -> str:
    """Returns the topmost folder of a path that is on the same disk as the path's last existing folder."""
    path = os.path.abspath(path)
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    device = os.stat(path).st_dev
    while path != "/" and os.stat(os.path.dirname(path)).st_dev == device:
        path = os.path.dirname(path)
    return path
