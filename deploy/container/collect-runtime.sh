#!/usr/bin/env bash
# collect-runtime.sh [--cuda] BUILD TARGET: copies the programs of a build folder to TARGET/bin, and the libraries they
# load that no Debian package provides to TARGET/lib: the operators, and LibTorch from its wheel. --cuda: also the
# CUDA plugin, LibTorch's CUDA part and CUDA's libraries from their wheels, which ./dev setup cuda installs.
# The programs find the libraries wherever TARGET is moved. TARGET/wheels lists the wheels that libraries come
# from, one name and version per line, for sbom.sh.
set -euo pipefail

cuda=false
if [[ ${1:-} == --cuda ]]; then
  cuda=true
  shift
fi
if [[ $# -ne 2 || ! -x $1/bin/saccaded ]]; then
  echo "usage: collect-runtime.sh [--cuda] BUILD TARGET, where BUILD/bin/saccaded is a built daemon" >&2
  exit 2
fi
build=$1
target=$2
plugin=$build/lib/libsaccade_cuda.so
if $cuda && [[ ! -f $plugin ]]; then
  echo "collect-runtime.sh: no $plugin; expected a build with nvcc (./dev setup cuda, then ./dev build)" >&2
  exit 1
fi

mkdir -p "$target/bin" "$target/lib"
# The daemon starts the worker that lies beside it.
programs=("$build/bin/saccaded" "$build/bin/saccade-decode-worker")
if [[ -x $build/bin/saccade ]]; then
  programs+=("$build/bin/saccade")
fi
if [[ -x $build/bin/saccade-quantize ]]; then
  programs+=("$build/bin/saccade-quantize")
fi
install -m 755 -s "${programs[@]}" "$target/bin"

users=("${programs[@]}")
if $cuda; then
  # Opened by path when a GPU is found, so that no program's ldd lists it.
  users+=("$plugin")
  install -m 644 "$plugin" "$target/lib"
fi
"$(dirname "${BASH_SOURCE[0]}")/list-libraries.sh" "${users[@]}" |
  while read -r library; do
    install -m 644 "$library" "$target/lib"
    case $library in
      */site-packages/*)
        packages=${library%%/site-packages/*}/site-packages
        mapfile -t records < <(grep -lF "${library#"$packages/"}," "$packages"/*.dist-info/RECORD)
        awk -F': ' '/^Name: /{name = $2} /^Version: /{print name, $2; exit}' "${records[0]%RECORD}METADATA"
        ;;
    esac
  done | sort -u >"$target/wheels"
# Opened by name for packages of AOTInductor, so ldd does not list it.
install -m 644 "$build/lib/libsaccade_torch_stand_in.so" "$target/lib"
# In place of the folders of the machine that built them.
# shellcheck disable=SC2016
patchelf --set-rpath '$ORIGIN/../lib' "$target"/bin/*
# shellcheck disable=SC2016
patchelf --set-rpath '$ORIGIN' "$target"/lib/libsaccade_*.so
