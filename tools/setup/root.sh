# shellcheck shell=bash disable=SC2034,SC2154
# A root file system of the distribution that has nothing of this machine but its network settings (apt's sources and
# settings, pip's settings, certificates, proxies), its cores and its kernel. Sourced by tools/fresh and tools/package after
# step.sh and packages.sh; the root lies in $root.

# Namespaces of the host's root if this runs as root, else those of a user namespace with this user as root.
namespaces=(--mount --pid --fork --kill-child)
mode=root
if [ "$(id -u)" -ne 0 ]; then
  mode=unshare
  namespaces+=(--user --map-root-user --map-auto)
fi

# Returns whether this machine lets us make mounts, or user namespaces.
can_make_root() { unshare "${namespaces[@]}" true 2>/dev/null; }

codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)

# Removes $root.
remove_root() {
  [ -e "$root" ] || return 0
  unshare "${namespaces[@]}" rm -rf --one-file-system "$root"
}

# make_root PACKAGES: makes $root with these packages, separated by commas.
make_root() {
  ensure_packages mmdebstrap
  local sources=() settings=() hooks=() file
  # Only the distribution's sources, not others that this machine may have.
  mapfile -t sources < <(grep -lsE "(^|[[:space:]])$codename([[:space:]]|\$)" /etc/apt/sources.list /etc/apt/sources.list.d/*)
  [ ${#sources[@]} -gt 0 ] || die "no file of /etc/apt names $codename. What to do: add the distribution's own sources"
  mapfile -t settings < <(grep -lsE '^[[:space:]]*Acquire' /etc/apt/apt.conf /etc/apt/apt.conf.d/* | sed 's/^/--aptopt=/')
  hooks=(--customize-hook='copy-in /etc/resolv.conf /etc')
  for file in /etc/pip.conf "$HOME/.config/pip/pip.conf"; do
    [ ! -e "$file" ] || hooks+=(--customize-hook="upload $file /etc/pip.conf")
  done
  if compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null; then
    # shellcheck disable=SC2016
    hooks+=(--customize-hook='copy-in /usr/local/share/ca-certificates /usr/local/share'
      --customize-hook='chroot "$1" update-ca-certificates')
  fi
  remove_root
  step --limit 900 --tries 2 --advice "$network_advice" "a root file system of $codename in $root (about 250 MB)" \
    mmdebstrap --mode="$mode" --variant=apt --include="$1" ${settings[@]+"${settings[@]}"} "${hooks[@]}" \
    "$codename" "$root" "${sources[@]}"
}

# inside COMMAND...: runs the command as root of $root, with only the network settings of the environment.
inside() {
  local kept=() name
  while IFS='=' read -r name _; do
    case $name in
      *_proxy | *_PROXY | PIP_INDEX_URL | PIP_EXTRA_INDEX_URL | PIP_CERT | PIP_TRUSTED_HOST | PIP_DEFAULT_TIMEOUT | SSL_CERT_FILE | \
        REQUESTS_CA_BUNDLE | CURL_CA_BUNDLE | TERM | SACCADE_JOBS | SACCADE_FAST) kept+=("$name=${!name}") ;;
    esac
  done < <(env)
  # shellcheck disable=SC2016
  unshare "${namespaces[@]}" bash -c '
    set -e
    root=$1
    shift
    mount --make-rprivate /
    # A root that is a mount, which ip and other programs that make namespaces rely on.
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    mount -t tmpfs tmpfs "$root/dev/shm"
    mount -t tmpfs tmpfs "$root/run"
    exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
      PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"' \
    inside "$root" ${kept[@]+"${kept[@]}"} "$@"
}
