#!/usr/bin/env bash
# collect-runtime.sh BUILD TARGET: copies the programs of a build folder to TARGET/bin, and the libraries they
# load that no Debian package provides to TARGET/lib: the operators, and LibTorch from its wheel.
# The programs find the libraries wherever TARGET is moved. TARGET/wheels lists the wheels that libraries come
# from, one name and version per line, for sbom.sh.
set -euo pipefail

if [[ $# -ne 2 || ! -x $1/bin/saccaded ]]; then
  echo "usage: collect-runtime.sh BUILD TARGET, where BUILD/bin/saccaded is a built daemon" >&2
  exit 2
fi
build=$1
target=$2

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

missing=$(ldd "${programs[@]}" | grep 'not found' || true)
if [[ -n $missing ]]; then
  echo "collect-runtime.sh: libraries not found: $missing" >&2
  exit 1
fi
ldd "${programs[@]}" | awk '$2 == "=>" && $3 !~ "^/(usr/)?lib/" { print $3 }' | sort -u |
  while read -r library; do
    install -m 644 "$library" "$target/lib"
    case $library in
      */site-packages/*)
        library=$(realpath -s "$library")
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
