"""Control groups (cgroups) for a daemon: the limits of a container, on machines where this process may make them."""

import contextlib
import errno
import pathlib
import subprocess
import uuid

from harness import eventually

CGROUPS = pathlib.Path("/sys/fs/cgroup")


class NoControlGroup(Exception):
    """No such control group can be made here; the text says why."""


def into(group):
    """Words before a command that has to run in the group, see Daemon's `under`."""
    return ("sh", "-c", 'echo $$ >"$0/cgroup.procs" && exec "$@"', str(group))


def removed(group):
    """Removes a control group; returns whether it had no process. Decode workers end a moment after their daemon."""
    try:
        group.rmdir()
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        return False
    return True


@contextlib.contextmanager
def control_group(controller, version_1, version_2, root=CGROUPS):
    """Makes a control group, yields its folder, and removes it. `controller` is what the limits are of, such as "memory".
    `version_1` and `version_2` are the limits in each version of control groups: names of files, and what is written to
    them. The first file has to be there, the others need not. Raises NoControlGroup."""
    first = root / controller if (root / controller).is_dir() else root
    group = first / f"saccade-{uuid.uuid4().hex}"
    try:
        group.mkdir()
    except OSError as error:
        raise NoControlGroup(f"no control group can be made here: {error}") from None
    try:
        set_limits(group, controller, version_1, version_2)
        yield group
    finally:
        eventually(lambda: removed(group), f"every process has left {group}")


def set_limits(group, controller, version_1, version_2):
    for limits in (version_1, version_2):
        if (group / next(iter(limits))).exists():
            break
    else:
        raise NoControlGroup(f"control groups do not limit {controller} here")
    try:
        for file, value in limits.items():
            if (group / file).exists():
                (group / file).write_text(str(value))
    except OSError as error:
        raise NoControlGroup(f"the limits of a control group cannot be set here: {error}") from None
    entered = subprocess.run([*into(group), "true"], capture_output=True, text=True)
    if entered.returncode != 0:
        raise NoControlGroup(f"no process can be put into a control group here: {entered.stderr.strip()}")


def group_of_memory(limit_bytes, root=CGROUPS):
    """A control group whose processes may have so much memory together, and no swap beside it where Linux counts swap."""
    return control_group("memory", {"memory.limit_in_bytes": limit_bytes, "memory.memsw.limit_in_bytes": limit_bytes},
                         {"memory.max": limit_bytes, "memory.swap.max": 0}, root)
