#!/usr/bin/env bash
# collect-openvino.sh BUILD TARGET PYTHON: copies what serves graphs to TARGET/lib: the library that runs them, the program
# that checks them, and the part of OpenVINO's wheel in PYTHON that they load. Adds the wheel to TARGET/wheels, for
# sbom.sh. Tries the program on a small graph. Run it in the repository's root.
set -euo pipefail

if [[ $# -ne 3 || ! -x $1/lib/saccade-openvino-check ]]; then
  echo "usage: collect-openvino.sh BUILD TARGET PYTHON, where BUILD/lib has saccade-openvino-check (./dev setup openvino, then a build)" >&2
  exit 2
fi
build=$1
target=$2
python=$3
lib=$target/lib

mkdir -p "$lib/openvino"
install -m 755 -s "$build/lib/saccade-openvino-check" "$lib"
install -m 644 -s "$build/lib/libsaccade_openvino.so" "$lib"
# In place of the folders of the machine that built it.
# shellcheck disable=SC2016
patchelf --set-rpath '$ORIGIN/openvino' "$lib/libsaccade_openvino.so"
wheel=$("$python" -c 'import importlib.util as u; print(u.find_spec("openvino").submodule_search_locations[0])')
for name in libopenvino.so libopenvino_onnx_frontend.so libopenvino_ir_frontend.so libopenvino_intel_cpu_plugin.so libtbb.so; do
  install -m 644 "$wheel/libs/$name"* "$lib/openvino"
done
awk -F': ' '/^Name: /{name = $2} /^Version: /{print name, $2; exit}' "$wheel"-*.dist-info/METADATA >>"$target/wheels"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PYTHONPATH=tests/e2e "$python" -c '
import pathlib, sys, onnx_files as onnx
io = onnx.value("x", "float32", ["n", 4]), onnx.value("y", "float32", ["n", 4])
pathlib.Path(sys.argv[1]).write_bytes(onnx.model([onnx.node("Relu", ["x"], ["y"])], io[:1], io[1:]))' "$work/try.onnx"
answer=$("$lib/saccade-openvino-check" "$work/try.onnx" $((4 << 30)) 60)
[[ $answer = ok ]] || { echo "collect-openvino.sh: the program does not take a graph: $answer" >&2; exit 1; }
