# shellcheck shell=bash disable=SC2154
# Tells whether a check has nothing new to say: the files that it reads are those with which it has passed, or have not changed
# recently. Sourced, with $cache set.

# Prints what stands for the committed state of the files.
fingerprint_of() { git ls-tree -r HEAD -- "$@" | sha256sum | cut -d ' ' -f 1; }

# reason_to_skip CHECK FILE...: prints why the check can be left out; prints nothing if it must run.
reason_to_skip() {
  local check=$1 base
  shift
  if [ -e "$cache/$check.passed" ] && grep -Fxq "$(fingerprint_of "$@")" "$cache/$check.passed"; then
    echo "it passed here with exactly these files"
    return
  fi
  [ "$(git rev-parse --is-shallow-repository)" = false ] || return 0
  base=$(git rev-parse --verify --quiet origin/main || true)
  if [ -n "$base" ] && [ "$base" != "$(git rev-parse HEAD)" ]; then
    git diff --quiet "$base" HEAD -- "$@" && echo "nothing of $* differs from origin/main"
    return 0
  fi
  # In a clone of main: compares with the state three days before HEAD.
  base=$(git rev-list -1 --before="$(($(git show -s --format=%ct HEAD) - 3 * 86400))" HEAD)
  [ -n "$base" ] || return 0
  git diff --quiet "$base" HEAD -- "$@" && echo "nothing of $* changed in the three days before HEAD"
  return 0
}

# note_passed CHECK FILE...: the check has passed with the files, unless some of them are not committed.
note_passed() {
  local check=$1
  shift
  [ -z "$(git status --porcelain -- "$@")" ] || { say "$check: what is not committed was not tried"; return 0; }
  fingerprint_of "$@" >>"$cache/$check.passed"
}
