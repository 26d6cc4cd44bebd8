"""Certificates of a test authority, made with the openssl command."""

import itertools
import os
import pathlib
import shutil
import subprocess
import typing

CURVE = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
_numbers = itertools.count()


class Pair(typing.NamedTuple):
    certificate: pathlib.Path
    key: pathlib.Path


def openssl(*arguments):
    done = subprocess.run(["openssl", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Authority:
    """Signs certificates for 127.0.0.1 and localhost, for servers and clients."""

    def __init__(self, folder, name="authority"):
        self._folder = pathlib.Path(folder)
        self.pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        openssl("req", "-x509", *CURVE, "-keyout", self.pair.key, "-out", self.pair.certificate, "-subj", f"/CN={name}",
                "-days", 2)

    @property
    def root(self):
        return self.pair.certificate

    def issue(self, name, days=2):
        """Returns a pair of files; `days=-1` makes an expired certificate."""
        stem = self._folder / f"{name}-{next(_numbers)}"
        made = Pair(stem.with_suffix(".pem"), stem.with_suffix(".key"))
        openssl("req", *CURVE, "-keyout", made.key, "-out", stem.with_suffix(".csr"), "-subj", f"/CN={name}", "-addext",
                "subjectAltName=IP:127.0.0.1,DNS:localhost")
        openssl("x509", "-req", "-in", stem.with_suffix(".csr"), "-CA", self.root, "-CAkey", self.pair.key, "-out",
                made.certificate, "-days", days, "-copy_extensions", "copy")
        return made


def put(file, target):
    """Replaces the file atomically, as tools that renew certificates do."""
    beside = target.with_suffix(".new")
    beside.write_bytes(file.read_bytes())
    shutil.copymode(file, beside)
    os.replace(beside, target)
