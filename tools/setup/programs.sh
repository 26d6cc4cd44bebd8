# shellcheck shell=bash disable=SC2034,SC2154
# Programs that the tests run beside the daemon. Sourced by ./dev after packages.sh and python.sh.

ensure_prometheus() {
  [ -x "$venv/prometheus/usr/bin/promtool" ] || unpack_package prometheus "$venv/prometheus" 20
}

# HAProxy for ./dev rollout. The libraries that it is linked with are installed as packages.
ensure_haproxy() {
  local libraries
  [ -x "$venv/haproxy/usr/sbin/haproxy" ] && return
  is_available haproxy || die "the distribution has no package haproxy. What to do: add its main component to apt's sources"
  mapfile -t libraries < <(apt-cache depends haproxy | sed -n 's/^  Depends: \(lib[^ ]*\)$/\1/p')
  ensure_packages "${libraries[@]}"
  unpack_package haproxy "$venv/haproxy" 2
}

# TypeScript's compiler, which ./dev lint checks the page's modules with. It runs in the Node that Playwright brings, so that
# none is installed.
ensure_typescript() {
  [ -e "$venv/typescript/usr/share/nodejs/typescript/lib/tsc.js" ] || unpack_package node-typescript "$venv/typescript" 7
}

# A browser for the tests of the page: Debian's Chromium. Ubuntu has it only as a snap, which does not run in
# containers; Playwright's own is used there. Without a browser only the tests of the page fail.
ensure_browser() {
  command -v chromium >/dev/null && return
  if is_available chromium; then
    ensure_packages chromium
  elif [ ! -e "$venv/.browser" ]; then
    if (step --limit 600 --tries 2 "Chromium from Playwright (about 110 MB)" \
      "$SACCADE_PYTHON" -m playwright install --with-deps --only-shell chromium); then
      touch "$venv/.browser"
    else
      say "no browser: neither apt nor Playwright has Chromium here; the tests of the page will fail as 'no browser'"
    fi
  fi
}
