#include "server/decode/workers/worker_pool.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

// How often a call is asked whether it is still wanted. A picture that takes less is never asked.
constexpr int kAskMilliseconds = 10;

constexpr absl::Duration kMinBackoff = absl::Milliseconds(100);
constexpr absl::Duration kMaxBackoff = absl::Seconds(10);

// How long a process that was started may take until it answers: it loads its libraries first.
constexpr int kStartMilliseconds = 60'000;

// Processor time for a header. It is read in milliseconds, unless a library can be kept busy by it.
constexpr absl::Duration kMaxHeaderCpu = absl::Seconds(5);

// Beyond its job's processor time, after which a worker is killed if it was not ended by its own limit: that
// counts whole seconds, and one that was taken over may have raised it.
constexpr absl::Duration kCpuGrace = absl::Seconds(3);

// Processor time that an idle worker may take, which only waits for a job, and how often that is looked at.
constexpr absl::Duration kMaxIdleCpu = absl::Milliseconds(100);
constexpr absl::Duration kLookInterval = absl::Seconds(1);

// Processor time that a process has used; zero if it has ended.
absl::Duration CpuTimeOf(pid_t process) {
  clockid_t cpu_clock{};
  timespec used{};
  if (clock_getcpuclockid(process, &cpu_clock) != 0 || clock_gettime(cpu_clock, &used) != 0)
    return absl::ZeroDuration();
  return absl::DurationFromTimespec(used);
}

struct Sockets {
  int ours = -1;
  int theirs = -1;
};

std::optional<Sockets> MakeSockets() {
  int both[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, both) != 0) return std::nullopt;
  return Sockets{both[0], both[1]};
}

// Waits until something can be received; false after `milliseconds`.
bool Readable(int socket, int milliseconds) {
  pollfd one = {.fd = socket, .events = POLLIN, .revents = 0};
  return poll(&one, 1, milliseconds) > 0;
}

// True if a message of exactly this size came.
template <typename Message>
bool Receive(int socket, Message& message) {
  ssize_t got = 0;
  do {
    got = recv(socket, &message, sizeof(message), MSG_TRUNC);
  } while (got < 0 && errno == EINTR);
  return got == sizeof(message);
}

// The error in a worker's reply, which may hold anything.
absl::Status StatusOf(const WorkerReply& reply) {
  if (reply.code == 0) return absl::OkStatus();
  const bool known = reply.code > 0 && reply.code <= static_cast<int32_t>(absl::StatusCode::kUnauthenticated);
  const absl::string_view text(reply.text, std::min<size_t>(reply.text_bytes, WorkerReply::kMaxText));
  return {known ? static_cast<absl::StatusCode>(reply.code) : absl::StatusCode::kInternal, text};
}

std::string HowItEnded(int wait_status) {
  if (wait_status == -1) return "for an unknown reason";
  if (WIFEXITED(wait_status)) return absl::StrCat("with code ", WEXITSTATUS(wait_status));
  const char* const name = sigabbrev_np(WTERMSIG(wait_status));
  return absl::StrCat("by signal ", WTERMSIG(wait_status),
                      name == nullptr ? "" : absl::StrCat(" (SIG", name, ")"));
}

absl::Status SystemRefused(absl::string_view what, int error) {
  return OutOfMemory(absl::StrCat("no decode worker can be started: ", what, ": ", std::strerror(error),
                                  "; try again later"));
}

}  // namespace

const char* WorkerEndName(WorkerEnd end) {
  switch (end) {
    case WorkerEnd::kCrashed:
      return "crashed";
    case WorkerEnd::kCpuTime:
      return "cpu_time";
    case WorkerEnd::kNotWanted:
      return "not_wanted";
    case WorkerEnd::kIdle:
      return "idle";
  }
  return "";
}

WorkerProcess::~WorkerProcess() {
  if (socket >= 0) close(socket);
}

DecodeWorker::~DecodeWorker() { pool_->Release(std::move(process_)); }

absl::Status DecodeWorker::Load(std::string_view input, uint64_t decoded_bytes) {
  input_bytes_ = input.size();
  if (absl::Status room = Reserve(decoded_bytes); !room.ok()) return room;
  std::memcpy(process_->memory->data(), input.data(), input.size());
  return absl::OkStatus();
}

absl::Status DecodeWorker::Reserve(uint64_t decoded_bytes) {
  if (process_ == nullptr) return absl::InternalError("the decode worker has ended");
  return process_->memory->Grow(DecodedOffset(input_bytes_) + decoded_bytes);
}

absl::StatusOr<WorkerReply> DecodeWorker::Run(WorkerJob job, const StillWanted& wanted) {
  if (process_ == nullptr) return absl::InternalError("the decode worker has ended");
  job.input_bytes = input_bytes_;
  job.memory_bytes = process_->memory->bytes();
  const bool is_header = job.task == WorkerTask::kOpenVideo || job.task == WorkerTask::kReadHeader;
  job.max_cpu_seconds = static_cast<uint64_t>(absl::ToInt64Seconds(
      is_header ? std::min(kMaxHeaderCpu, pool_->options_.max_cpu) : pool_->options_.max_cpu));
  const absl::Duration max_cpu = CpuTimeOf(process_->pid) + absl::Seconds(job.max_cpu_seconds) + kCpuGrace;
  if (send(process_->socket, &job, sizeof(job), MSG_NOSIGNAL) != sizeof(job))
    return pool_->Crashed(std::move(process_));
  return Await(wanted, max_cpu);
}

absl::StatusOr<WorkerReply> DecodeWorker::Await(const StillWanted& wanted, absl::Duration max_cpu) {
  while (!Readable(process_->socket, kAskMilliseconds)) {
    if (CpuTimeOf(process_->pid) > max_cpu)
      return pool_->Crashed(std::move(process_), /*took_too_long=*/true);
    if (wanted == nullptr) continue;
    if (absl::Status still = wanted(); !still.ok()) {
      const std::string how = absl::StrCat("by the daemon: ", still.message());
      pool_->End(std::move(process_));
      pool_->ReportEnd(WorkerEnd::kNotWanted, how, "");
      return still;
    }
  }
  WorkerReply reply;
  if (!Receive(process_->socket, reply)) return pool_->Crashed(std::move(process_));
  if (absl::Status told = StatusOf(reply); !told.ok()) return told;
  return reply;
}

absl::StatusOr<SourcePixels> DecodeWorker::Pixels(const WorkerReply& reply) const {
  const WorkerPixels& pixels = reply.pixels;
  const uint64_t room = process_ == nullptr ? 0 : process_->memory->bytes();
  const auto width = static_cast<uint64_t>(pixels.width);
  const auto height = static_cast<uint64_t>(pixels.height);
  // Divides instead of multiplying, to avoid overflow.
  if (pixels.width < 1 || pixels.height < 1 || pixels.offset >= room || pixels.row_bytes / 3 < width ||
      pixels.row_bytes > (room - pixels.offset) / height)
    return absl::InternalError("a decode worker described pixels that it does not have");
  return SourcePixels{.data = process_->memory->data() + pixels.offset,
                      .row_bytes = pixels.row_bytes,
                      .width = pixels.width,
                      .height = pixels.height};
}

const uint8_t* DecodeWorker::decoded() const {
  return process_->memory->data() + DecodedOffset(input_bytes_);
}

absl::StatusOr<std::unique_ptr<WorkerPool>> WorkerPool::Create(WorkerPoolOptions options, Clock* clock) {
  std::unique_ptr<WorkerPool> pool(new WorkerPool(std::move(options), clock));
  auto first = pool->Acquire();
  if (!first.ok()) return first.status();
  first->reset();
  return pool;
}

WorkerPool::~WorkerPool() {
  {
    absl::MutexLock lock(&mutex_);
    idle_.clear();
  }
  absl::MutexLock lock(&helper_mutex_);
  EndHelper();
}

void WorkerPool::EndBusyIdle() {
  std::vector<std::unique_ptr<WorkerProcess>> busy;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_->Now();
    if (now < next_look_) return;
    next_look_ = now + kLookInterval;
    // Before anything is moved: an allocation that failed later would leave null pointers in idle_.
    busy.reserve(idle_.size());
    const auto first = std::stable_partition(idle_.begin(), idle_.end(), [](const auto& process) {
      return CpuTimeOf(process->pid) - process->cpu_when_idle <= kMaxIdleCpu;
    });
    std::move(first, idle_.end(), std::back_inserter(busy));
    idle_.erase(first, idle_.end());
  }
  for (std::unique_ptr<WorkerProcess>& process : busy) {
    End(std::move(process));
    ReportEnd(WorkerEnd::kCpuTime, "by the daemon: it computed without a job", "");
  }
}

absl::StatusOr<std::unique_ptr<DecodeWorker>> WorkerPool::Acquire() {
  EndBusyIdle();
  for (;;) {
    std::unique_ptr<WorkerProcess> process;
    {
      absl::MutexLock lock(&mutex_);
      if (idle_.empty()) break;
      process = std::move(idle_.back());
      idle_.pop_back();
    }
    // It says nothing without a job, so there is something to receive only once it has ended.
    if (!Readable(process->socket, 0)) {
      absl::MutexLock lock(&mutex_);
      ++counts_.busy;
      return std::unique_ptr<DecodeWorker>(new DecodeWorker(this, std::move(process)));
    }
    ReportEnd(WorkerEnd::kIdle, HowItEnded(End(std::move(process))), "");
  }
  auto started = Start();
  if (!started.ok()) return started.status();
  absl::MutexLock lock(&mutex_);
  ++counts_.started;
  ++counts_.busy;
  return std::unique_ptr<DecodeWorker>(new DecodeWorker(this, *std::move(started)));
}

void WorkerPool::Release(std::unique_ptr<WorkerProcess> process) {
  if (process != nullptr) {
    process->memory->Trim(options_.kept_bytes);
    process->cpu_when_idle = CpuTimeOf(process->pid);
  }
  {
    absl::MutexLock lock(&mutex_);
    --counts_.busy;
    if (process == nullptr) return;
    if (static_cast<int>(idle_.size()) < options_.max_idle) {
      idle_.push_back(std::move(process));
      return;
    }
  }
  End(std::move(process));
}

WorkerPool::Counts WorkerPool::counts() const {
  absl::MutexLock lock(&mutex_);
  Counts counts = counts_;
  counts.idle = static_cast<int64_t>(idle_.size());
  return counts;
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerPool::Start() {
  absl::MutexLock lock(&helper_mutex_);
  if (const absl::Duration left = retry_ - clock_->Now(); left > absl::ZeroDuration()) {
    return absl::UnavailableError(
        absl::StrCat(failure_.message(), " (next attempt in ", absl::FormatDuration(left), ")"));
  }
  auto started = TryStart();
  // A helper that had ended is replaced at once.
  if (absl::IsUnavailable(started.status()) && helper_ == 0) started = TryStart();
  if (started.ok()) {
    backoff_ = absl::ZeroDuration();
    return started;
  }
  // Starting costs processor time that other requests need, so it is tried more and more rarely.
  backoff_ = std::clamp(2 * backoff_, kMinBackoff, kMaxBackoff);
  retry_ = clock_->Now() + backoff_;
  failure_ = started.status();
  return started;
}

absl::StatusOr<std::unique_ptr<WorkerProcess>> WorkerPool::TryStart() {
  if (helper_ == 0) {
    if (absl::Status helper = StartHelper(); !helper.ok()) return helper;
  }
  auto memory = SharedBuffer::Create();
  if (!memory.ok()) return memory.status();
  const auto sockets = MakeSockets();
  if (!sockets) return SystemRefused("socketpair", errno);
  auto process = std::make_unique<WorkerProcess>();
  process->socket = sockets->ours;
  process->memory = *std::move(memory);
  process->generation = generation_;
  auto told =
      Ask({.kind = HelperOrder::Kind::kSpawn, .pid = 0}, {sockets->theirs, process->memory->descriptor()});
  close(sockets->theirs);
  if (!told.ok()) return told.status();
  if (told->pid < 0) return SystemRefused("fork", -told->pid);
  process->pid = told->pid;
  WorkerReply ready;
  if (!Readable(process->socket, kStartMilliseconds) || !Receive(process->socket, ready))
    return absl::UnavailableError("a decode worker ended before it was ready; try again later");
  if (absl::Status confined = StatusOf(ready); !confined.ok()) {
    return absl::UnimplementedError(
        absl::StrCat("this system does not let decode workers confine themselves: ", confined.message()));
  }
  return process;
}

absl::Status WorkerPool::StartHelper() {
  const auto sockets = MakeSockets();
  if (!sockets) return SystemRefused("socketpair", errno);
  // dup2 clears the flag that closes the descriptor in the new program, also if both numbers are equal.
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, sockets->theirs, kWorkerControl);
  std::string program = options_.program;
  std::string parent = absl::StrCat(getpid());
  std::string drills = "drills";
  char* const arguments[] = {program.data(), parent.data(), options_.drills ? drills.data() : nullptr,
                             nullptr};
  pid_t made = 0;
  const int failed = posix_spawn(&made, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(sockets->theirs);
  if (failed != 0) {
    close(sockets->ours);
    return SystemRefused(program, failed);
  }
  helper_ = made;
  control_ = sockets->ours;
  ++generation_;
  return absl::OkStatus();
}

void WorkerPool::EndHelper() {
  if (helper_ == 0) return;
  // It ends its workers, and then itself.
  close(control_);
  while (waitpid(helper_, nullptr, 0) < 0 && errno == EINTR) {
  }
  helper_ = 0;
}

absl::StatusOr<HelperReply> WorkerPool::Ask(const HelperOrder& order, const std::vector<int>& descriptors) {
  iovec part = {.iov_base = const_cast<HelperOrder*>(&order), .iov_len = sizeof(order)};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char room[CMSG_SPACE(2 * sizeof(int))] = {};
  if (!descriptors.empty()) {
    const size_t bytes = descriptors.size() * sizeof(int);
    message.msg_control = room;
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const passed = CMSG_FIRSTHDR(&message);
    passed->cmsg_level = SOL_SOCKET;
    passed->cmsg_type = SCM_RIGHTS;
    passed->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(passed), descriptors.data(), bytes);
  }
  HelperReply reply;
  if (sendmsg(control_, &message, MSG_NOSIGNAL) == sizeof(order) && Readable(control_, kStartMilliseconds) &&
      Receive(control_, reply))
    return reply;
  // The kernel has ended its workers with it.
  kill(helper_, SIGKILL);
  EndHelper();
  return absl::UnavailableError("the helper that starts decode workers has ended; try again later");
}

int WorkerPool::End(std::unique_ptr<WorkerProcess> process) {
  absl::MutexLock lock(&helper_mutex_);
  if (helper_ == 0 || process->generation != generation_) return -1;
  auto told = Ask({.kind = HelperOrder::Kind::kEnd, .pid = process->pid}, {});
  return told.ok() ? told->wait_status : -1;
}

absl::Status WorkerPool::Crashed(std::unique_ptr<WorkerProcess> process, bool took_too_long) {
  const pid_t pid = process->pid;
  const int wait_status = End(std::move(process));
  const bool cpu_time =
      took_too_long || (wait_status != -1 && WIFSIGNALED(wait_status) && WTERMSIG(wait_status) == SIGXCPU);
  std::string reference;
  {
    absl::MutexLock lock(&mutex_);
    reference = absl::StrCat("decode-", pid, "-", ++references_);
  }
  ReportEnd(cpu_time ? WorkerEnd::kCpuTime : WorkerEnd::kCrashed, HowItEnded(wait_status), reference);
  return absl::InternalError(
      cpu_time ? absl::StrCat("decoding took more than ", absl::FormatDuration(options_.max_cpu),
                              " of processor time and was ended; the server's log has it under reference ",
                              reference)
               : absl::StrCat(
                     "the process that decoded it has ended; nothing else was lost; the server's log has it "
                     "under reference ",
                     reference));
}

void WorkerPool::ReportEnd(WorkerEnd end, const std::string& how, const std::string& reference) const {
  if (options_.on_end) options_.on_end(end, how, reference);
}

}  // namespace saccade::server
