// The daemon's side of its decode workers: starts them, gives each to one caller at a time, and ends them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/decode/decoder.h"
#include "server/decode/workers/messages.h"
#include "server/decode/workers/shared_buffer.h"

namespace saccade::server {

// Why a worker ended before the daemon did: by itself during a job, because it took too much processor time
// in a job or without one, because its job's call was cancelled or late, or by itself without a job.
enum class WorkerEnd { kCrashed, kCpuTime, kNotWanted, kIdle };
inline constexpr int kWorkerEnds = 4;
const char* WorkerEndName(WorkerEnd end);

struct WorkerPoolOptions {
  // Path of saccade-decode-worker.
  std::string program = {};
  // Maximum number of workers that are kept while nothing is decoded.
  int max_idle = 1;
  // Shared memory that an idle worker keeps, so that the next picture finds pages in it.
  uint64_t kept_bytes = uint64_t{8} << 20;
  // Processor time for one picture, for one frame of a video or for one volume.
  absl::Duration max_cpu = absl::Seconds(60);
  bool drills = false;
  // Called on any thread when a worker ended. `reference` is part of the error that the request gets, and
  // empty if no request gets one. Must be thread-safe.
  std::function<void(WorkerEnd end, const std::string& how, const std::string& reference)> on_end = nullptr;
};

// A process, its socket and its memory. Closes the socket, on which the process ends.
struct WorkerProcess {
  ~WorkerProcess();

  int socket = -1;
  std::unique_ptr<SharedBuffer> memory;
  pid_t pid = 0;
  // Number of the helper that forked it.
  uint64_t generation = 0;
  // Processor time that it had used when it became idle.
  absl::Duration cpu_when_idle = absl::ZeroDuration();
};

class WorkerPool;

// A worker that one caller holds. Not thread-safe. Idle again when destroyed, unless its process has ended.
class DecodeWorker {
 public:
  ~DecodeWorker();
  DecodeWorker(const DecodeWorker&) = delete;
  DecodeWorker& operator=(const DecodeWorker&) = delete;

  // Puts `input` at the start of the shared memory and makes room for `decoded_bytes` behind it.
  absl::Status Load(std::string_view input, uint64_t decoded_bytes);
  // Makes room for `decoded_bytes` behind the input.
  absl::Status Reserve(uint64_t decoded_bytes);

  // Does a job with the input of Load(). Blocks. Errors: what the worker told; the error of `wanted`, after
  // which the process is ended; INTERNAL with a reference to the log if the process ended by itself.
  absl::StatusOr<WorkerReply> Run(WorkerJob job, const StillWanted& wanted);

  // The pixels that a reply describes. INTERNAL if they do not lie in the shared memory.
  absl::StatusOr<SourcePixels> Pixels(const WorkerReply& reply) const;
  // What was decoded, behind the input.
  const uint8_t* decoded() const;

  pid_t pid() const { return process_->pid; }

 private:
  friend class WorkerPool;
  DecodeWorker(WorkerPool* pool, std::unique_ptr<WorkerProcess> process)
      : pool_(pool), process_(std::move(process)) {}

  // `max_cpu` is the processor time that the process may have used in all.
  absl::StatusOr<WorkerReply> Await(const StillWanted& wanted, absl::Duration max_cpu);

  WorkerPool* const pool_;
  // Null once it has ended.
  std::unique_ptr<WorkerProcess> process_;
  uint64_t input_bytes_ = 0;
};

// Thread-safe.
class WorkerPool {
 public:
  // Starts the helper and a first worker. Errors say why this machine does not allow workers.
  static absl::StatusOr<std::unique_ptr<WorkerPool>> Create(WorkerPoolOptions options, Clock* clock);
  // Ends all workers. REQUIRES: none is held.
  ~WorkerPool();

  // An idle worker, or a new one. UNAVAILABLE while workers cannot be started; RESOURCE_EXHAUSTED without
  // memory.
  absl::StatusOr<std::unique_ptr<DecodeWorker>> Acquire() ABSL_LOCKS_EXCLUDED(mutex_, helper_mutex_);

  struct Counts {
    int64_t busy = 0;
    int64_t idle = 0;
    int64_t started = 0;
  };
  Counts counts() const ABSL_LOCKS_EXCLUDED(mutex_);
  const WorkerPoolOptions& options() const { return options_; }

 private:
  friend class DecodeWorker;
  WorkerPool(WorkerPoolOptions options, Clock* clock) : options_(std::move(options)), clock_(clock) {}

  absl::StatusOr<std::unique_ptr<WorkerProcess>> Start() ABSL_LOCKS_EXCLUDED(helper_mutex_);
  absl::StatusOr<std::unique_ptr<WorkerProcess>> TryStart() ABSL_EXCLUSIVE_LOCKS_REQUIRED(helper_mutex_);
  absl::Status StartHelper() ABSL_EXCLUSIVE_LOCKS_REQUIRED(helper_mutex_);
  void EndHelper() ABSL_EXCLUSIVE_LOCKS_REQUIRED(helper_mutex_);
  absl::StatusOr<HelperReply> Ask(const HelperOrder& order, const std::vector<int>& descriptors)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(helper_mutex_);
  // Ends a process and returns what waitpid tells, or -1 if nobody can tell.
  int End(std::unique_ptr<WorkerProcess> process) ABSL_LOCKS_EXCLUDED(helper_mutex_);
  // Ends a process that failed during a job, or that took too much processor time without ending by itself,
  // and returns the error of the job.
  absl::Status Crashed(std::unique_ptr<WorkerProcess> process, bool took_too_long = false);
  void Release(std::unique_ptr<WorkerProcess> process) ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends idle workers that compute although they have no job. Looks at them once in a second at most.
  void EndBusyIdle() ABSL_LOCKS_EXCLUDED(mutex_, helper_mutex_);
  void ReportEnd(WorkerEnd end, const std::string& how, const std::string& reference) const;

  const WorkerPoolOptions options_;
  Clock* const clock_;

  mutable absl::Mutex mutex_;
  std::vector<std::unique_ptr<WorkerProcess>> idle_ ABSL_GUARDED_BY(mutex_);
  // When EndBusyIdle() looks again.
  absl::Time next_look_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  Counts counts_ ABSL_GUARDED_BY(mutex_);
  uint64_t references_ ABSL_GUARDED_BY(mutex_) = 0;

  absl::Mutex helper_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  pid_t helper_ ABSL_GUARDED_BY(helper_mutex_) = 0;
  int control_ ABSL_GUARDED_BY(helper_mutex_) = -1;
  uint64_t generation_ ABSL_GUARDED_BY(helper_mutex_) = 0;
  // Workers are not started before this time, and after the next failure not for so long.
  absl::Time retry_ ABSL_GUARDED_BY(helper_mutex_) = absl::InfinitePast();
  absl::Duration backoff_ ABSL_GUARDED_BY(helper_mutex_) = absl::ZeroDuration();
  absl::Status failure_ ABSL_GUARDED_BY(helper_mutex_);
};

}  // namespace saccade::server
