#include "server/lifecycle/signals.h"

#include <signal.h>
#include <time.h>

namespace saccade::server {
namespace {

sigset_t EndSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  return signals;
}

}  // namespace

void BlockSignals() {
  const sigset_t signals = EndSignals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  signal(SIGPIPE, SIG_IGN);
  // A file that reaches the limit of its size is an error of the write instead.
  signal(SIGXFSZ, SIG_IGN);
}

bool AwaitSignal(absl::Duration timeout) {
  const sigset_t signals = EndSignals();
  const timespec wait = absl::ToTimespec(timeout);
  return sigtimedwait(&signals, nullptr, &wait) > 0;
}

}  // namespace saccade::server
