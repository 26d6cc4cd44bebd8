"""A small disk for the tests of what happens when one is full."""

import os
import pathlib
import subprocess

import pytest

_SCRIPT = 'mount -t tmpfs -o "size=$1" none /mnt && echo mounted && exec cat'


class SmallDisk:
    """A file system in memory. It is mounted in a namespace of its own, so it ends with the process that holds the namespace,
    and this user needs no rights. All processes of the user reach it through /proc."""

    def __init__(self, size):
        command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", _SCRIPT, "sh", str(size)]
        self._holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        said = self._holder.stdout.readline()
        if said != "mounted\n":
            self.close()
            pytest.skip(f"no disk can be mounted here: {said}")
        self.folder = pathlib.Path("/proc", str(self._holder.pid), "root", "mnt")
        self._ballast = self.folder / "ballast"

    def leave(self, room):
        """Takes all room but so many bytes."""
        self._ballast.write_bytes(bytes(self.free() - room))

    def make_room(self):
        self._ballast.unlink()

    def free(self):
        found = os.statvfs(self.folder)
        return found.f_bavail * found.f_frsize

    def used_by_files(self):
        """Returns the room of the files that have a name, in contrast to open files that were removed."""
        return sum(path.stat().st_blocks * 512 for path in self.folder.rglob("*") if path.is_file())

    def size(self):
        found = os.statvfs(self.folder)
        return found.f_blocks * found.f_frsize

    def close(self):
        self._holder.stdin.close()
        self._holder.wait(60)
        self._holder.stdout.close()
