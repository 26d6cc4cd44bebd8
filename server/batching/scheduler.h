// Who computes what next on the cores, or on the GPUs, as a state machine: no thread, no lock, no clock of
// its own. All models that compute there share it; each has queues by bucket and instances that compute.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/batching/batch_task.h"
#include "server/batching/batcher_options.h"

namespace saccade::server {

struct SchedulerOptions {
  // Of each place; passes that together take more do not run there at the same time. A single pass may take
  // more than all.
  int cores = 1;
};

// Where each of a model's instances computes, by number: all the cores are one place, each GPU is one. Those
// of several places take from the same queue; the models at a place share it by their weights.
using Places = std::vector<int>;

// Not thread-safe.
class Scheduler {
 public:
  using ModelId = int;

  // A task that will not run, and why; Reject was not called yet.
  struct Dropped {
    std::unique_ptr<BatchTask> task;
    absl::Status why;
  };

  // What an idle instance has to compute now: pictures of one bucket.
  struct Batch {
    ModelId model = 0;
    int instance = 0;
    std::vector<std::unique_ptr<BatchTask>> tasks;
    // What it is expected to take; 0 if nothing is known of its bucket.
    absl::Duration expected = absl::ZeroDuration();
  };

  explicit Scheduler(const SchedulerOptions& options);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Its instances, numbered as `places` are, are idle. REQUIRES: CheckOptions(options).ok(), !places.empty().
  ModelId AddModel(const BatcherOptions& options, const Places& places);

  // Hands back what waits, in no order. REQUIRES: none of its instances computes.
  std::vector<std::unique_ptr<BatchTask>> RemoveModel(ModelId model);

  // No Push for the model from here on; what waits is handed out without waiting for company.
  void Close(ModelId model);

  // What a pass of a model over so many pictures of a bucket took, before there are requests (by the
  // warm-up).
  void Learn(ModelId model, int64_t bucket, int64_t size, absl::Duration took);

  // Takes `task` only if OK; otherwise it is untouched, and its owner answers it. Errors:
  //   UNAVAILABLE         the model is closed
  //   INVALID_ARGUMENT    the size is not within 1 .. max_batch_size
  //   CANCELLED           the client is gone already
  //   DEADLINE_EXCEEDED   its deadline or timeout is past, or would be before a pass alone could end
  //   RESOURCE_EXHAUSTED  the queue is full, or what waits would make it late; carries a hint when to retry
  // What has to make room for it goes to `dropped`.
  absl::Status Push(ModelId model, std::unique_ptr<BatchTask>& task, absl::Time now,
                    std::vector<Dropped>* dropped);

  // What Push would say of one item of a task, were it there now: for tasks that cost something to make. It
  // belongs in the first of `buckets`, or perhaps in another of them: it is not refused for its time if one
  // of which something is known would do. What this refuses counts as come and is not to be pushed; OK
  // promises nothing. REQUIRES: !buckets.empty().
  absl::Status Consider(ModelId model, const BatchTask::Traits& traits, absl::Span<const int64_t> buckets,
                        absl::Time now, std::vector<Dropped>* dropped);

  // The next batch, for an instance that then counts as computing; nothing while no batch is due. To be asked
  // until there is nothing, after every Push, Finished and Close, and when wake_at() has come. What is dead
  // or cannot be in time any more goes to `dropped`.
  std::optional<Batch> Next(absl::Time now, std::vector<Dropped>* dropped);

  // Drops what is dead, or cannot be in time any more, of models whose instances all compute: Next looks at
  // the others alone. To be called now and then.
  void Sweep(absl::Time now, std::vector<Dropped>* dropped);

  // The instance is idle again. `learn`: its pass was an ordinary one, which tells how long passes take.
  void Finished(ModelId model, int instance, absl::Time now, bool learn);

  // A pass over so many items of a bucket found no memory: for a while at most half of them go together.
  void NoRoomFor(ModelId model, int64_t bucket, int64_t size, absl::Time now);

  // When Next may have something although nothing else has happened.
  absl::Time wake_at() const;

  // Pictures waiting.
  int64_t queued(ModelId model) const;
  bool closed(ModelId model) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace saccade::server
