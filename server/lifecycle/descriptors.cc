#include "server/lifecycle/descriptors.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace saccade::server {
namespace {

class Reserve {
 public:
  void Fill() {
    absl::MutexLock lock(&mutex_);
    Open();
  }

  // Accepts one pending connection with the reserved descriptor and closes it. Returns false if there was
  // none.
  bool TurnAway(int listener) {
    absl::MutexLock lock(&mutex_);
    if (descriptor_ < 0) Open();
    if (descriptor_ < 0) return false;
    close(descriptor_);
    const int client = static_cast<int>(syscall(SYS_accept4, listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (client >= 0) close(client);
    Open();
    return client >= 0;
  }

 private:
  void Open() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { descriptor_ = open("/dev/null", O_RDONLY | O_CLOEXEC); }

  absl::Mutex mutex_;
  int descriptor_ ABSL_GUARDED_BY(mutex_) = -1;
};

Reserve& TheReserve() {
  static Reserve* reserve = new Reserve;
  return *reserve;
}

}  // namespace

void PrepareForTooManyFiles() {
  rlimit limit;
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
    const rlimit raised = {.rlim_cur = limit.rlim_max, .rlim_max = limit.rlim_max};
    // On failure the limit stays unchanged.
    setrlimit(RLIMIT_NOFILE, &raised);
  }
  TheReserve().Fill();
}

}  // namespace saccade::server

// Replaces the C library's accept4(), which gRPC calls. Blocking listeners are left alone: their callers wait
// for descriptors themselves.
extern "C" int accept4(int listener, sockaddr* address, socklen_t* size, int flags) {
  for (;;) {
    const int client = static_cast<int>(syscall(SYS_accept4, listener, address, size, flags));
    const bool exhausted = client < 0 && (errno == EMFILE || errno == ENFILE);
    if (!exhausted || (fcntl(listener, F_GETFL) & O_NONBLOCK) == 0) return client;
    if (!saccade::server::TheReserve().TurnAway(listener)) {
      // No connection is pending any more; gRPC continues to listen.
      errno = EAGAIN;
      return -1;
    }
  }
}
