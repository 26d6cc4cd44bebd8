# shellcheck shell=bash disable=SC2154
# Tells whether a check has nothing new to say: the files that it reads are those with which it has passed, or have not changed
# recently. Sourced, with $cache set.

# Prints what stands for the committed state of the files; prints nothing if some are not committed.
fingerprint_of() {
  [ -n "$(git status --porcelain -- "$@")" ] || git ls-tree -r HEAD -- "$@" | sha256sum | cut -d ' ' -f 1
}

# reason_to_skip CHECK FINGERPRINT FILE...: prints why the check can be left out; prints nothing if it must run.
reason_to_skip() {
  local check=$1 fingerprint=$2 base
  shift 2
  [ -n "$fingerprint" ] || return 0
  if [ -e "$cache/$check.passed" ] && grep -Fxq "$fingerprint" "$cache/$check.passed"; then
    echo "it passed here with exactly these files"
    return
  fi
  # What has failed here runs until it passes.
  [ ! -e "$cache/$check.failed" ] || return 0
  [ "$(git rev-parse --is-shallow-repository)" = false ] || return 0
  base=$(git rev-parse --verify --quiet origin/main || true)
  if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
    git diff --quiet "$base" HEAD -- "$@" && echo "nothing of $* differs from origin/main"
    return 0
  fi
  # In a clone of main: compares with the state three days before HEAD.
  base=$(git rev-list -1 --first-parent --before="$(($(git show -s --format=%ct HEAD) - 3 * 86400))" HEAD)
  [ -n "$base" ] || return 0
  git diff --quiet "$base" HEAD -- "$@" && echo "nothing of $* changed in the three days before HEAD"
  return 0
}

# note_run CHECK FINGERPRINT CODE: remembers how a run of the check ended. The fingerprint is from before the run.
note_run() {
  local check=$1 fingerprint=$2 code=$3
  if [ "$code" -ne 0 ]; then
    : >"$cache/$check.failed"
    return
  fi
  rm -f "$cache/$check.failed"
  if [ -n "$fingerprint" ]; then
    echo "$fingerprint" >>"$cache/$check.passed"
  else
    say "$check: what is not committed is not remembered as passed"
  fi
}
