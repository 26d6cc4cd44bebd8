#include "server/decode/workers/drills.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

absl::Status Prevented(bool prevented, const char* what) {
  if (prevented) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("a worker could ", what));
}

void Loop() {
  volatile uint64_t turns = 0;
  for (;;) turns = turns + 1;
}

// As code that has taken over a worker may do: the limit of processor time does not end it any more.
void RaiseLimits() {
  rlimit limit{};
  getrlimit(RLIMIT_CPU, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_CPU, &limit);
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_BLOCK, &all, nullptr);
}

// Takes and uses memory in steps of 64 MiB, until there is none.
absl::Status TakeMemory() {
  constexpr size_t kStep = size_t{64} << 20;
  constexpr int kMaxSteps = 256;
  for (int step = 0; step < kMaxSteps; ++step) {
    void* const taken = mmap(nullptr, kStep, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (taken == MAP_FAILED) return absl::ResourceExhaustedError(absl::StrCat(step, " steps"));
    std::memset(taken, step, kStep);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Perform(Drill drill) {
  switch (drill) {
    case Drill::kCrash:
      raise(SIGSEGV);
      // The sandbox allows no signals, so it has to be a real fault.
      *reinterpret_cast<volatile int*>(static_cast<uintptr_t>(1)) = 1;
      break;
    case Drill::kLoop:
      Loop();
      break;
    case Drill::kLoopWithoutLimits:
      RaiseLimits();
      Loop();
      break;
    case Drill::kLoopAfterwards: {
      const WorkerReply done = {};
      if (send(kWorkerSocket, &done, sizeof(done), MSG_NOSIGNAL) == sizeof(done)) Loop();
      break;
    }
    case Drill::kAllocate:
      return TakeMemory();
    case Drill::kOpenFiles:
      return Prevented(open("/etc/passwd", O_RDONLY) < 0 && open("/tmp", O_TMPFILE | O_RDWR, 0600) < 0 &&
                           unlink("/tmp/saccade-no-such-file") < 0 && errno == EPERM && dup(0) < 0,
                       "use files");
    case Drill::kOpenSockets:
      return Prevented(socket(AF_INET, SOCK_STREAM, 0) < 0 && socket(AF_UNIX, SOCK_STREAM, 0) < 0,
                       "open sockets");
    case Drill::kStartProcesses:
      return Prevented(fork() < 0 && execl("/bin/true", "true", nullptr) < 0 && kill(getppid(), 0) < 0,
                       "start processes or signal others");
    case Drill::kExecutableMemory:
      return Prevented(
          mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED,
          "map executable memory");
  }
  return absl::InternalError("the drill did not do what it should");
}

}  // namespace saccade::server
