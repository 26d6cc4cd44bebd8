# shellcheck shell=bash disable=SC2034,SC2154
# Python environments: LibTorch, the tests' packages and the benchmarks' peers. Every package is pinned with
# its hash in tools/setup/requirements; ./dev lock regenerates those files. Sourced by ./dev after step.sh,
# with $cache set.

requirements=tools/setup/requirements
venv="$cache/python"
pip_advice='check that the network and the package index of pip work (python3 -m pip download six), then run the same command again'

# pip_install TITLE PYTHON LIST [OPTIONS...]
pip_install() {
  local title=$1 python=$2 list=$3
  shift 3
  step --limit 3600 --tries 3 --advice "$pip_advice" "$title" \
    "$python" -m pip install --no-input --disable-pip-version-check --require-hashes -r "$list" "$@"
}

make_environment() { # FOLDER PYTHON
  step --limit 300 --advice "delete $1, and run the same command again" \
    "making a Python environment in $1 (about 20 MB)" "$2" -m venv --clear "$1"
}

# ensure_requirements NAME TITLE [OPTIONS...]: installs the list NAME into the environment if it has changed.
ensure_requirements() {
  local name=$1 title=$2
  shift 2
  cmp -s "$requirements/$name.txt" "$venv/.$name" && return
  pip_install "$title" "$venv/bin/python" "$requirements/$name.txt" "$@"
  cp "$requirements/$name.txt" "$venv/.$name"
}

# ensure_python LIST: creates the environment. LIST is torch (its libraries only) or tests (torch for Python
# and all packages of the tests).
ensure_python() {
  [ -x "$venv/bin/python" ] || make_environment "$venv" python3
  # The tests' packages include those of the list torch.
  cmp -s "$requirements/tests.txt" "$venv/.tests" || [ "$1" = tests ] || ensure_requirements torch "LibTorch from PyPI (about 550 MB; CPU libraries only)" --no-deps
  if [ "$1" = tests ]; then
    ensure_requirements tests "Python packages of the tests (torch with all its libraries, about 3 GB)"
    ensure_openvino
    ensure_requirements loadgen "MLPerf's LoadGen from PyPI (about 1 MB)" --no-deps
    ensure_requirements perf_analyzer "perf_analyzer from PyPI (about 15 MB)" --no-deps --upgrade --target "$venv/perf_analyzer"
  fi
  export SACCADE_PYTHON="$venv/bin/python"
}

# ./dev demo draws its contact sheet with Pillow, which the tests' packages include.
ensure_demo_python() {
  cmp -s "$requirements/tests.txt" "$venv/.tests" || ensure_requirements demo "Pillow from PyPI (about 7 MB)"
}

# Its headers and libraries make libsaccade_openvino.so; ./dev bench models and graphs compare with it.
ensure_openvino() {
  ensure_requirements openvino "OpenVINO from PyPI (about 60 MB)" --no-deps
}

# What LibTorch's CUDA part loads, and nvcc, which makes the CUDA plugin.
ensure_cuda() {
  ensure_requirements cuda "CUDA's libraries and nvcc from PyPI (some gigabytes)" --no-deps
}

# Has CMake find the nvcc of the list cuda on a machine that has no other.
use_nvcc() {
  local nvcc
  if [ -n "${CUDACXX:-}" ] || [ -x /usr/local/cuda/bin/nvcc ] || command -v nvcc >/dev/null; then return 0; fi
  for nvcc in "$venv"/lib/python3*/site-packages/nvidia/cu13/bin/nvcc; do
    [ -x "$nvcc" ] || continue
    # The linker does not look for the name under which the wheel has the library.
    ln -sf libcudart.so.13 "${nvcc%/bin/nvcc}/lib/libcudart.so"
    export CUDACXX=$nvcc
  done
}

# Ray, Spark and Parquet for ./dev test-bulk, in an environment of their own.
ensure_bulk_python() {
  local folder="$cache/bulk" wanted=$requirements/bulk.txt
  cmp -s "$wanted" "$folder/.done" && return
  make_environment "$folder" python3
  pip_install "Ray, Spark and Parquet from PyPI (about 600 MB)" "$folder/bin/python" "$wanted"
  cp "$wanted" "$folder/.done"
}

# timm and transformers for ./dev verify-zoo, in a folder of their own beside the tests' packages.
ensure_zoo_python() {
  ensure_requirements zoo "timm and transformers from PyPI (about 60 MB)" --no-deps --upgrade --target "$venv/zoo"
}

# SAHI for ./dev bench tiles, in a folder of its own beside the tests' packages.
ensure_sahi_python() {
  ensure_requirements sahi "SAHI from PyPI (about 70 MB)" --no-deps --upgrade --target "$venv/sahi"
}

# NNCF for ./dev bench models, in a folder of its own beside the tests' packages.
ensure_nncf_python() {
  ensure_requirements nncf "NNCF from PyPI (about 50 MB)" --no-deps --upgrade --target "$venv/nncf"
}

# What makes the wheels of ./dev package, in an environment of its own.
ensure_package_python() {
  local folder="$cache/package" wanted=$requirements/package.txt
  cmp -s "$wanted" "$folder/.done" && return
  make_environment "$folder" python3
  pip_install "Python packages for making wheels (about 10 MB)" "$folder/bin/python" "$wanted"
  cp "$wanted" "$folder/.done"
}

# Triton and perf_analyzer for ./dev bench server, in an environment of their own: Triton's Python backend is
# linked with the distribution's Python, and uses torch from the tests' environment.
ensure_bench_peers() {
  local peers="$cache/triton" wanted=$requirements/triton.txt
  cmp -s "$wanted" "$peers/.done" && return
  ensure_packages libb64-0d libpython3-dev
  make_environment "$peers" /usr/bin/python3
  pip_install "Triton and perf_analyzer from PyPI (about 60 MB)" "$peers/bin/python" "$wanted" --no-deps
  "$SACCADE_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$peers/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/saccade.pth"
  cp "$wanted" "$peers/.done"
}

# Resolves the .in lists into .txt lists with the hash of every file. Needs PyPI; installs nothing
# permanently.
lock_requirements() {
  local name tool flags
  tool=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$tool'" EXIT
  python3 -m venv "$tool"
  pip_install "uv from PyPI (about 20 MB)" "$tool/bin/python" "$requirements/lock.txt"
  for name in "$requirements"/*.in; do
    name=$(basename "$name" .in)
    flags=()
    # Lists without dependencies, installed with --no-deps.
    case $name in torch | cuda | perf_analyzer | openvino | loadgen | triton | zoo | sahi | nncf) flags=(--no-deps) ;; esac
    step --limit 300 --tries 3 --advice "$pip_advice" "resolving $name" "$tool/bin/uv" pip compile -q --universal \
      --python-version 3.11 --generate-hashes --no-annotate --custom-compile-command './dev lock' \
      ${flags[@]+"${flags[@]}"} "$requirements/$name.in" -o "$requirements/$name.txt"
  done
}
