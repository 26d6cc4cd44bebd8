// saccade-decode-worker: the process from which saccaded's decode workers are forked. The daemon starts it
// (worker_pool.h). It has one thread and none of the daemon's memory, so forking it is safe and cheap, and it
// loads the libraries once.
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "server/decode/workers/messages.h"
#include "server/decode/workers/worker.h"

namespace saccade::server {
namespace {

constexpr int kReceived = 2;

// Receives an order and up to two descriptors. False if the daemon has closed its end.
bool Receive(HelperOrder& order, int (&received)[kReceived]) {
  std::fill_n(received, kReceived, -1);
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(received))];
  iovec part = {.iov_base = &order, .iov_len = sizeof(order)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = room;
  message.msg_controllen = sizeof(room);
  ssize_t got = 0;
  do {
    got = recvmsg(kWorkerControl, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got != sizeof(order)) return false;
  const cmsghdr* const passed = CMSG_FIRSTHDR(&message);
  if (passed != nullptr && passed->cmsg_type == SCM_RIGHTS && passed->cmsg_len == CMSG_LEN(sizeof(received)))
    std::memcpy(received, CMSG_DATA(passed), sizeof(received));
  return true;
}

// Ends this process if its parent, `parent`, has ended or ends.
void EndWith(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  // The parent may have ended before.
  if (getppid() != parent) _exit(1);
}

class Helper {
 public:
  explicit Helper(bool drills) : drills_(drills) {}

  void Run() {
    HelperOrder order;
    int received[kReceived];
    while (Receive(order, received)) {
      HelperReply reply;
      if (order.kind == HelperOrder::Kind::kSpawn) {
        reply.pid = Spawn(received[0], received[1]);
      } else {
        reply.wait_status = End(order.pid);
      }
      for (const int one : received) {
        if (one >= 0) close(one);
      }
      if (send(kWorkerControl, &reply, sizeof(reply), MSG_NOSIGNAL) != sizeof(reply)) break;
    }
    while (!workers_.empty()) End(workers_.back());
  }

 private:
  int32_t Spawn(int socket, int memory) {
    if (socket < 0 || memory < 0) return -EBADF;
    const pid_t self = getpid();
    const pid_t made = fork();
    if (made < 0) return -errno;
    if (made > 0) {
      workers_.push_back(made);
      return made;
    }
    EndWith(self);
    // Above the numbers that they get, so that none of them is overwritten.
    const int high_socket = fcntl(socket, F_DUPFD, kWorkerMemory + 1);
    const int high_memory = fcntl(memory, F_DUPFD, kWorkerMemory + 1);
    if (dup2(high_socket, kWorkerSocket) < 0 || dup2(high_memory, kWorkerMemory) < 0) _exit(1);
    close(kWorkerControl);
    if (close_range(kWorkerMemory + 1, ~0U, 0) != 0) _exit(1);
    RunWorker(drills_);
  }

  // Ends the worker, unless it has ended, and returns what waitpid tells.
  int32_t End(pid_t worker) {
    const auto found = std::find(workers_.begin(), workers_.end(), worker);
    if (found == workers_.end()) return 0;
    workers_.erase(found);
    // It is a child that was not waited for, so nobody else has its number.
    kill(worker, SIGKILL);
    int status = 0;
    while (waitpid(worker, &status, 0) < 0 && errno == EINTR) {
    }
    return status;
  }

  const bool drills_;
  std::vector<pid_t> workers_;
};

void Detach() {
#if !defined(SACCADE_ASAN) && !defined(SACCADE_TSAN)
  // Libraries write warnings about damaged pictures, as many as a client likes.
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int standard = 0; standard <= 2; ++standard) dup2(null, standard);
#endif
  close_range(kWorkerControl + 1, ~0U, 0);
  sigset_t nothing;
  sigemptyset(&nothing);
  sigprocmask(SIG_SETMASK, &nothing, nullptr);
  // The daemon decides when decoding ends: at a signal to its whole group it finishes its requests first.
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) signal(number, SIG_IGN);
}

int Main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "saccade-decode-worker: saccaded starts this program; it does nothing by itself\n");
    return 2;
  }
  EndWith(static_cast<pid_t>(std::strtol(argv[1], nullptr, 10)));
  Detach();
  prctl(PR_SET_NAME, "decode-helper");
  PrepareOpenCv();
  Helper(argc == 3 && std::string_view(argv[2]) == "drills").Run();
  return 0;
}

}  // namespace
}  // namespace saccade::server

int main(int argc, char** argv) { return saccade::server::Main(argc, argv); }
