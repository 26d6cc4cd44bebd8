# shellcheck shell=bash disable=SC2034,SC2154
# Debian packages that the build and the tests need, and their installation. Sourced by ./dev after step.sh.

build_packages=(g++ cmake ninja-build ccache mold pkg-config ca-certificates python3 python3-venv
  libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  libopencv-dev libfreetype-dev fonts-dejavu-core libjpeg-dev libpng-dev libtiff-dev libwebp-dev libavformat-dev libswscale-dev prometheus-cpp-dev libspdlog-dev libboost-dev
  nlohmann-json3-dev libcli11-dev libgtest-dev libgmock-dev libbenchmark-dev libcurl4-openssl-dev libzstd-dev libssl-dev libre2-dev libc-ares-dev zlib1g-dev
  libgoogle-perftools-dev libnghttp2-dev patchelf)
# curl, nghttp and h2load as clients, gRPC for Go and Ruby, perf_analyzer's library, network namespaces for ./dev rollout, the linter for
# shell scripts, and what makes the package.
test_packages=(git curl nghttp2-client golang-go golang-google-grpc-dev ruby-grpc libb64-0d iproute2 shellcheck dpkg-dev)
# clang compiles the presets with sanitizers and what ./dev coverage measures, and analyses locks for ./dev lint.
clang_packages=(clang-16 libclang-rt-16-dev)
coverage_packages=("${clang_packages[@]}" llvm-16)

network_advice='check that the network and the package sources of apt work (apt-get update), then run the same command again'

update_package_lists() {
  step_as_root --limit 300 --tries 3 --advice "$network_advice" "apt-get update (lists, about 10 MB)" apt-get update
}

# Installs the given packages if they are missing.
ensure_packages() {
  local missing=() name size
  for name in "$@"; do
    [[ $(dpkg-query -W -f='${Status}' "$name" 2>/dev/null) == *'install ok installed'* ]] || missing+=("$name")
  done
  [ ${#missing[@]} -eq 0 ] && return
  command -v apt-get >/dev/null ||
    die "this is not Debian 12 or Ubuntu 24.04 (no apt-get). Install these packages by hand: ${missing[*]}"
  update_package_lists
  size=$(LC_ALL=C apt-get install --assume-no --no-install-recommends "${missing[@]}" 2>/dev/null |
    sed -n 's/^Need to get \([^ ]* [kMG]*B\).*/\1/p') || true
  step_as_root --limit 1800 --tries 3 --advice "$network_advice" \
    "installing ${#missing[@]} Debian packages (${size:-size unknown} to download)" \
    env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends "${missing[@]}"
}

# Returns whether apt can install the package. Updates the package lists once if they lack it.
is_available() {
  local tries
  for tries in 1 2; do
    [[ $(LC_ALL=C apt-cache policy "$1" 2>/dev/null) == *'Candidate: '[0-9]* ]] && return
    [ "$tries" -eq 2 ] || update_package_lists
  done
  return 1
}

# unpack_package NAME FOLDER SIZE: unpacks a package into a folder of its own. Installing prometheus or
# haproxy would start a server.
unpack_package() {
  is_available "$1" || update_package_lists
  # shellcheck disable=SC2016
  step --limit 600 --tries 3 --advice "$network_advice" "$1 from the distribution (about $3 MB)" bash -c '
    set -eu
    rm -rf "$2" "$2.new"
    mkdir -p "$2.new"
    cd "$2.new"
    apt-get download "$1"
    dpkg-deb -x "$1"_*.deb .
    rm "$1"_*.deb
    mv "$2.new" "$2"' unpack "$1" "$2"
}
