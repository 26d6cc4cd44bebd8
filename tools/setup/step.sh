# shellcheck shell=bash disable=SC2034,SC2154
# Messages, and long-running commands with progress, a time limit and retries. Sourced by ./dev and
# tools/fresh.

say() { printf '\033[1m==>\033[0m %s\n' "$*" >&2; }
die() { printf 'dev: %s\n' "$*" >&2; exit 1; }

# step [--limit SECONDS] [--tries N] [--advice TEXT] TITLE COMMAND...
#
# Runs COMMAND, an external program, and returns 0 if it succeeds. On a terminal it shows a running clock and
# the last line of output; elsewhere it prints one line at the start and one at the end. COMMAND is stopped
# after SECONDS (default 0: no limit) and is tried up to N times (default: once). If every try fails, the
# script ends: it prints the whole output, and a last line that says what to do (TEXT).
step() {
  local limit=0 tries=1 advice='read the output above, fix the reported problem, and run the same command again'
  while [[ ${1:-} == --* ]]; do
    case $1 in
      --limit) limit=$2 ;;
      --tries) tries=$2 ;;
      --advice) advice=$2 ;;
      *) die "step: no option '$1'" ;;
    esac
    shift 2
  done
  local title=$1 log started=$SECONDS try code=0 reason begins
  shift
  log=$(mktemp "${TMPDIR:-/tmp}/saccade-dev.XXXXXX")
  say "$title"
  for ((try = 1; try <= tries; ++try)); do
    code=0
    begins=$(($(wc -l <"$log") + 1))
    run_watched "$limit" "$log" "$started" "$@" || code=$?
    if [ "$code" -eq 0 ]; then
      rm -f "$log"
      say "$title: done in $((SECONDS - started)) s"
      return 0
    fi
    reason="exit $code: $(last_words "$log" "$begins")"
    [ "$code" -ne 124 ] && [ "$code" -ne 137 ] || reason="stopped after its limit of $limit s"
    if [ "$try" -lt "$tries" ]; then
      say "$title: $reason; try $((try + 1)) of $tries in $((5 * try)) s"
      sleep $((5 * try))
    fi
  done
  cat "$log" >&2
  rm -f "$log"
  [ "$tries" -eq 1 ] || reason="$reason, $tries tries"
  die "'$title' failed ($reason). What to do: $advice"
}

# last_words LOG LINE: prints what a failed program wrote last into the log from this line on: the last error of apt, else the last
# line.
last_words() {
  awk -v begins="$2" 'NR < begins { next } { sub(/\r$/, "") } NF { last = $0 } /^E: / { error = $0 }
    END { print substr(error ? error : last ? last : "it printed nothing", 1, 200) }' "$1"
}

# run_watched LIMIT LOG STARTED COMMAND...: runs one try of a step. Returns COMMAND's exit code; 124 or 137 if
# it reached its time limit. Ctrl-C ends COMMAND and then the script.
run_watched() {
  local limit=$1 log=$2 started=$3 pid line code=0
  shift 3
  timeout --kill-after=10 "$limit" "$@" >>"$log" 2>&1 &
  pid=$!
  # shellcheck disable=SC2064
  trap "kill -TERM $pid 2>/dev/null; wait $pid; exit 130" INT TERM
  if [ -t 2 ]; then
    while kill -0 "$pid" 2>/dev/null; do
      line=$(tail -n 1 "$log" | tr -d '\r' | cut -c1-$(($(tput cols 2>/dev/null || echo 100) - 12)))
      printf '\r\033[K%6ss  %s' "$((SECONDS - started))" "$line" >&2
      sleep 0.5
    done
    printf '\r\033[K' >&2
  fi
  wait "$pid" || code=$?
  trap - INT TERM
  return "$code"
}

# Runs a step as root. sudo asks for a password before the step starts, because a step has no terminal.
step_as_root() {
  local options=()
  while [[ ${1:-} == --* ]]; do
    options+=("$1" "$2")
    shift 2
  done
  local title=$1
  shift
  if [ "$(id -u)" -eq 0 ]; then
    step "${options[@]}" "$title" "$@"
  else
    command -v sudo >/dev/null || die "'$title' needs root, and there is no sudo here. Run ./dev setup as root once."
    sudo -v
    step "${options[@]}" "$title" sudo "$@"
  fi
}
