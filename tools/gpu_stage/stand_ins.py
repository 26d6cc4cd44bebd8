"""Makes a shared library that stands in for another: with the symbols of it that some files look for, in the same
versions. Its functions return 0 and do nothing; its data is zero."""

import collections
import pathlib
import re
import subprocess
import tempfile

FUNCTION = "{name}: .type {name}, @function\n  xorl %eax, %eax\n  ret\n.size {name}, .-{name}\n"
DATA = "{name}: .type {name}, @object\n  .zero {size}\n.size {name}, {size}\n"


def symbols(file: pathlib.Path):
    """Yields (name, version or "", type, size, whether it is defined) of each dynamic symbol."""
    lines = subprocess.run(["readelf", "-W", "--dyn-syms", str(file)], check=True, capture_output=True, text=True).stdout
    for line in lines.splitlines():
        words = line.split()
        if len(words) < 8 or not words[0].rstrip(":").isdigit():
            continue
        name, _, version = words[7].partition("@")
        yield name, version.lstrip("@"), words[3], int(words[2], 0), words[6] != "UND"


def write_stand_in(original: pathlib.Path, soname: str, users: list[pathlib.Path], target: pathlib.Path):
    """Writes TARGET, which has what the `users` need of the original."""
    wanted = {name for user in users for name, _, _, _, defined in symbols(user) if not defined}
    code, versions = {".text": "", ".data": ""}, collections.defaultdict(list)
    for name, version, kind, size, defined in symbols(original):
        if not defined or name not in wanted or kind not in ("FUNC", "OBJECT", "IFUNC"):
            continue
        if not re.fullmatch(r"[\w.$]+", name):
            raise ValueError(f"{original}: cannot stand in for the symbol {name}")
        code[".data" if kind == "OBJECT" else ".text"] += (f".globl {name}\n"
                                                           + (DATA if kind == "OBJECT" else FUNCTION).format(name=name, size=size))
        versions[version].append(name)
    with tempfile.TemporaryDirectory() as folder:
        source, script = (pathlib.Path(folder) / name for name in ("stand_in.s", "versions"))
        source.write_text("".join(f"{section}\n.balign 16\n{text}" for section, text in code.items())
                          + '.section .note.GNU-stack,"",@progbits\n')
        script.write_text("".join(f"{version} {{ global: {' '.join(f'{name};' for name in names)} }};\n"
                                  for version, names in versions.items() if version))
        command = ["cc", "-shared", "-nostdlib", f"-Wl,-soname,{soname}", "-o", str(target), str(source)]
        if script.stat().st_size:
            command.append(f"-Wl,--version-script,{script}")
        subprocess.run(command, check=True)
