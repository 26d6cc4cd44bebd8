#!/usr/bin/env bash
# list-libraries.sh FILE...: prints the libraries that programs and libraries load and that no Debian package provides, one
# path per line: our own, and those of wheels. If LibTorch's CUDA part is among them, also what it and cuDNN open by
# name when it is needed. The driver's libraries are left out: they belong to the machine, and a container's runtime brings
# them. Fails if any other library is not found.
set -euo pipefail
shopt -s inherit_errexit

if [[ $# -eq 0 ]]; then
  echo "usage: list-libraries.sh FILE..., where FILE is a program or a library" >&2
  exit 2
fi

# Prints the libraries of the files; those of folders that Debian's packages use are left out.
loaded() { # FILE...
  local listing missing
  listing=$(ldd "$@")
  missing=$(grep 'not found' <<<"$listing" | grep -vE '^[[:space:]]*lib(cuda|nvidia-ml)\.so\.1 ' | sort -u || true)
  if [[ -n $missing ]]; then
    echo "list-libraries.sh: libraries not found: $missing" >&2
    exit 1
  fi
  awk '$2 == "=>" && $3 ~ "^/" && $3 !~ "^/(usr/)?lib/" { print $3 }' <<<"$listing" | sort -u |
    while read -r library; do realpath -s "$library"; done
}

# Prints what the library of this path opens by name.
opened_later() { # LIBRARY
  local folder=${1%/*}
  case ${1##*/} in
    # Linear algebra, and the compiler of kernels that are made when they are needed.
    libtorch_cuda.so) printf '%s\n' "$folder/libtorch_cuda_linalg.so" "$folder/libcaffe2_nvrtc.so" ;;
    libcudnn.so.*) printf '%s\n' "$folder"/libcudnn_*.so.* ;;
    libnvrtc.so.*) printf '%s\n' "$folder"/libnvrtc-builtins.so.* ;;
  esac
}

later=()
before=start
found=''
# What is opened later loads libraries, which may open others.
until [[ $found == "$before" ]]; do
  before=$found
  loaded=$(loaded "$@" "${later[@]}")
  opened=$(while read -r library; do opened_later "$library"; done <<<"$loaded")
  mapfile -t later < <(sed '/^$/d' <<<"$opened")
  found=$(printf '%s\n' "$loaded" "$opened" | sed '/^$/d' | sort -u)
done
# Of a name in several folders, the one of a wheel: its neighbours are made for it.
awk -F/ '
  { is_of_a_wheel = /\/site-packages\// }
  NF && (!($NF in path) || is_of_a_wheel) { path[$NF] = $0 }
  END { for (name in path) print path[name] }' <<<"$found" | sort
