// Requests that wait for their model to be loaded, and which model is loaded next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/catalog/backoff.h"
#include "server/core/call_head.h"
#include "server/core/clock.h"

namespace saccade::server {

struct LoadQueueOptions {
  // Maximum number of requests that wait for one model, and for all. Beside other clients, one has at most
  // half of these places.
  size_t max_waiting_per_model = 256;
  size_t max_waiting = 4096;
  // The longest that a request waits, whatever its deadline is.
  absl::Duration max_wait = absl::Seconds(60);
  // Maximum number of loads that run at the same time; at least 1.
  size_t max_loads = 1;
};

// Thread-safe. Calls `Resume` without holding the lock. An exception of a `Resume` is logged, and the others
// are called all the same.
class LoadQueue {
 public:
  using Resume = absl::AnyInvocable<void(absl::Status) &&>;

  // `ordered` is called, without the lock, whenever a model was asked for; it wakes the thread that loads.
  LoadQueue(const LoadQueueOptions& options, Clock* clock, std::function<void()> ordered);

  // Orders the model and lets the request wait for it. `resume` is called exactly once, possibly before this
  // returns: with OK once the model was loaded, or with the error that answers the request:
  //   UNAVAILABLE         with a retry hint: the model's last load failed a moment ago, or the load is not
  //                       expected to end before the request's deadline; the model is loaded nevertheless
  //   RESOURCE_EXHAUSTED  too many requests wait, or too many of this client while others ask for models
  //   DEADLINE_EXCEEDED, CANCELLED  while it waited
  void Await(const CallHead& call, Resume resume);
  // Orders the model like Await(), for a request that does not wait for it.
  void Want(const CallHead& call);

  // The model that most clients have asked for since it was ordered, however many requests each has sent; of
  // several such models one that requests wait for, and of these the one that was ordered first. Models whose
  // loads run are left out. nullopt if none is left.
  std::optional<std::string> MostWanted() const;
  // The models that requests wait for or have asked for, whether or not their loads run.
  std::vector<std::string> WantedModels() const;
  // Notes that these models are loaded at the start, before any model that requests ask for. Each counts
  // until its load begins (Begin) or EndAtStart().
  void ListAtStart(std::set<std::string> models);
  // Notes that the model is not loaded at the start any more, because it was or is not to be.
  void EndAtStart(const std::string& model);
  // Notes that the load of a model begins, whoever has asked for it. `alone`: no other load runs at the same
  // time. It ends with Loaded(), Failed(), Forget() or End() of that model.
  void Begin(const std::string& model, bool alone = false);
  // Notes that the load of a model has ended, without an answer to those who wait for the model.
  void End(const std::string& model);
  // Ends the wait for a model that was loaded within `took`; zero if that is not known.
  void Loaded(const std::string& model, absl::Duration took);
  // Ends the wait for a model that could not be loaded. Until its backoff has passed, requests are rejected
  // at once.
  void Failed(const std::string& model, const absl::Status& why);
  // Ends the wait for a model that is not to be loaded any more, and forgets its failures.
  void Forget(const std::string& model, const absl::Status& why);
  // Answers requests that were cancelled, or whose deadline has passed, and forgets models that no request
  // waits for and that were not asked for lately. Call it periodically.
  void Sweep();
  // Answers all requests, and those that are still to come, with `why`.
  void Close(const absl::Status& why);

  size_t waiting() const;

 private:
  struct Waiter {
    std::string client;
    absl::Time deadline;
    std::shared_ptr<Cancellation> cancellation;
    Resume resume;
  };
  struct Wanted {
    // Orders models that are wanted equally.
    int64_t number = 0;
    // Keys of clients that have asked since it was ordered, also of those whose requests were rejected. A
    // client that could count twice would decide alone what is loaded next.
    std::set<std::string> clients;
    absl::Time last_asked;
    std::vector<Waiter> waiters;
  };
  using Models = std::map<std::string, Wanted>;
  struct Failure {
    Backoff backoff;
    absl::Time not_before;
    std::string reason;
  };

  // A load that runs.
  struct Running {
    absl::Time since;
    bool alone = false;
    bool at_start = false;
  };
  // A load that has ended, and what is expected of the next one.
  struct Load {
    absl::Duration took = absl::ZeroDuration();
    bool alone = false;
  };

  // Enters the model in `wanted_`. UNAVAILABLE if it is not to be loaded now.
  absl::Status Note(const CallHead& call, absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a request may wait for its model, which is in `wanted_`.
  absl::Status Check(const CallHead& call, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // RESOURCE_EXHAUSTED if other clients ask for models too, and this one has half of the places.
  absl::Status CheckShare(const CallHead& call) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether another client has asked for the model since it was ordered.
  static bool HasCompany(const Wanted& wanted, const std::string& client);
  static bool IsBefore(const Wanted& a, const Wanted& b);
  // What the model's load is expected to be: like its last one, or else like those of other models.
  Load ExpectedLoad(const std::string& model) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // How long it is expected to take until the model, which is in `wanted_`, is loaded: the loads that run,
  // those that are left of the start, those of models that are wanted more, and its own take turns on the
  // threads.
  absl::Duration Expected(const std::string& model, absl::Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::vector<Waiter> Take(const std::string& model) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const LoadQueueOptions options_;
  Clock* const clock_;
  const std::function<void()> ordered_;

  mutable absl::Mutex mutex_;
  Models wanted_ ABSL_GUARDED_BY(mutex_);
  // The loads that run, by model.
  std::map<std::string, Running> running_ ABSL_GUARDED_BY(mutex_);
  // The models that are still to be loaded at the start, and whether its last load ran alone, as the next
  // ones are then expected to.
  std::set<std::string> at_start_ ABSL_GUARDED_BY(mutex_);
  bool alone_at_start_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<std::string, Failure> failures_ ABSL_GUARDED_BY(mutex_);
  // Each model's last load. Of all models, a moving mean of the times, and whether the last one ran alone.
  std::map<std::string, Load> last_ ABSL_GUARDED_BY(mutex_);
  Load typical_ ABSL_GUARDED_BY(mutex_);
  size_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_number_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status closed_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
