# shellcheck shell=bash
# Run by try_deb as root of a new file system, with the package in /tmp/saccade.deb. Prints what it does; fails if anything is
# not as a user would expect it.
set -euo pipefail
fail() { echo "try_deb: $*" >&2; exit 1; }

apt-get update -qq
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends /tmp/saccade.deb >/tmp/apt.log 2>&1 ||
  { cat /tmp/apt.log; fail "apt cannot install it"; }
echo "installed: $(dpkg-query -W -f='${Version}, ${Installed-Size} KiB' saccade)"
saccaded --version
bash /tmp/sbom.sh "$(dpkg-query -W -f='${Version}' saccade)" /usr/share/doc/saccade/libraries-from-pypi >/tmp/sbom.cdx.json

# systemd does not run here, so that only its files can be looked at.
grep -F ExecStart /lib/systemd/system/saccade.service
systemd-analyze verify /lib/systemd/system/saccade.service
[ "$(systemctl --root=/ is-enabled saccade.service)" = enabled ] || fail "the unit is not enabled"
# Of 100; Debian 12's systemd counts 16, and releases count a little differently.
max_exposure=20
exposure=$(systemd-analyze security --offline=true --threshold="$max_exposure" /lib/systemd/system/saccade.service) ||
  { echo "$exposure"; fail "the unit is exposed by more than $max_exposure of 100; give back what it no longer restricts"; }
echo "$exposure" | tail -n 1
[ "$(stat -c %U:%a /var/lib/saccade/models)" = saccade:750 ] || fail "/var/lib/saccade/models is not the daemon's"

# The configuration as installed serves no model, and is ready for the first one.
cp -r /usr/share/saccade/demo/sanet_shapes /var/lib/saccade/models/
setpriv --reuid=saccade --regid=saccade --clear-groups --no-new-privs --bounding-set=-all \
  /usr/bin/saccaded --config=/etc/saccade/saccaded.conf >/tmp/saccaded.out 2>/tmp/saccaded.err &
daemon=$!
for _ in $(seq 300); do
  ready=$(saccade status 2>&1) && break
  kill -0 $daemon 2>/dev/null || { cat /tmp/saccaded.err; fail "the daemon ended"; }
  sleep 0.2
done
echo "$ready"
models=$(saccade models)
grep -F sanet_shapes <<<"$models" || fail "the model is not served: $models"
kill -TERM $daemon
wait $daemon || fail "the daemon ended with $? after SIGTERM"

DEBIAN_FRONTEND=noninteractive apt-get purge -y -qq saccade >/tmp/apt.log 2>&1 || { cat /tmp/apt.log; fail "apt cannot purge it"; }
if [ -e /usr/lib/saccade ] || [ -e /etc/saccade ]; then fail "files are left after purge"; fi
[ -e /var/lib/saccade/models/sanet_shapes ] || fail "purge took the administrator's models"
echo "the package works"
