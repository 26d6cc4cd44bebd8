#!/usr/bin/env bash
# sbom.sh VERSION WHEELS: prints the image's bill of materials as CycloneDX 1.5 in JSON: the Debian packages
# that dpkg lists, and the wheels in the file WHEELS, written by collect-runtime.sh. Run it where the packages
# are installed.
set -euo pipefail

if [[ $# -ne 2 || ! -r $2 ]]; then
  echo "usage: sbom.sh VERSION WHEELS, where WHEELS is what collect-runtime.sh wrote" >&2
  exit 2
fi

component() { # NAME VERSION PURL
  printf '    {"type": "library", "name": "%s", "version": "%s", "purl": "%s"}' "$1" "$2" "$3"
}

# Package URLs require percent-encoding of plus and colon.
encoded() { sed -e 's/%/%25/g' -e 's/+/%2B/g' -e 's/:/%3A/g' <<<"$1"; }

# shellcheck disable=SC1091
. /etc/os-release
printf '{\n  "bomFormat": "CycloneDX",\n  "specVersion": "1.5",\n  "version": 1,\n'
printf '  "metadata": {"component": {"type": "application", "name": "saccade", "version": "%s"}},\n  "components": [\n' "$1"
separator=''
while read -r name version; do
  printf '%s' "$separator"
  component "$name" "$version" "pkg:pypi/$(encoded "${name,,}")@$(encoded "$version")"
  separator=$',\n'
done <"$2"
while IFS=$'\t' read -r name version architecture; do
  printf '%s' "$separator"
  component "$name" "$version" "pkg:deb/$ID/$(encoded "$name")@$(encoded "$version")?arch=$architecture&distro=$ID-$VERSION_ID"
  separator=$',\n'
done < <(dpkg-query -W -f='${db:Status-Status}\t${Package}\t${Version}\t${Architecture}\n' | sed -n 's/^installed\t//p')
printf '\n  ]\n}\n'
