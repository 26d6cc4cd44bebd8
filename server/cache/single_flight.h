// Computes equal requests that are in flight at the same time once.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/cache/cache_key.h"

namespace saccade::server {

// The first request for a key leads: it is computed. Equal ones that arrive meanwhile wait for its answer to
// be cached. Each keeps its own deadline and cancellation, and none depends on the leader's fate: a waiter is
// resumed whatever happens to the leader. Thread-safe; calls Waiter::resume without holding its lock.
class SingleFlight {
 public:
  enum class Event {
    // The leader was answered: look for the answer in the cache.
    kAnswered,
    // The leader was cancelled, late or rejected, for reasons of its own: join again.
    kLeaderLeft,
    // The leader failed. Equal input may fail again, so waiters do not lead one after the other: compute
    // alone.
    kLeaderFailed,
    // The waiter itself was cancelled or is late; the error says which.
    kExpired,
  };

  struct Waiter {
    int priority = 0;
    absl::Time deadline = absl::InfiniteFuture();
    // AnswerOrder::Turn::number(); the same for all requests if answers keep no order.
    int64_t turn = 0;
    // Returns CANCELLED or DEADLINE_EXCEEDED if the answer is no longer needed. Called by Sweep(), with the
    // lock held.
    std::function<absl::Status(absl::Time now)> check = nullptr;
    // Called once, on the thread of Land() or Sweep(), or by Land()'s `elsewhere`. The error is OK except for
    // kExpired. Must not block.
    absl::AnyInvocable<void(Event, absl::Status) &&> resume = nullptr;
  };

  class Flight;

  // Runs a task on another thread. Returns false, and does not run it, if there is no room.
  using Elsewhere = std::function<bool(std::function<void()> task)>;

  // So many waiters are resumed by Land() itself, and by each task that it gives away.
  static constexpr size_t kResumedAtOnce = 16;

  SingleFlight() = default;
  // REQUIRES: every flight has landed.
  ~SingleFlight() = default;
  SingleFlight(const SingleFlight&) = delete;
  SingleFlight& operator=(const SingleFlight&) = delete;

  // If an equal request is being computed that is at least as urgent (its priority is not lower, and its
  // deadline not later), and whose turn is not later, takes `waiter` and returns null. A leader with a later
  // turn could not be answered before the waiter, and so would never land. Otherwise the caller computes its
  // request: `waiter` is unchanged, and the flight must be passed to Land() when the request has ended.
  // `scope` is the model version; it must not be reused for another before the flight has landed.
  std::shared_ptr<Flight> Join(const void* scope, const CacheKey& key, Waiter& waiter);

  // Ends a flight with the status of its leader's answer, unless it has ended, and resumes the waiters: many
  // of them by `elsewhere`, one task after the other, so that the leader's thread can go on. Null: all on
  // this thread.
  void Land(const std::shared_ptr<Flight>& flight, const absl::Status& outcome,
            const Elsewhere& elsewhere = nullptr);

  // Resumes waiters that are cancelled or late. Call it periodically.
  void Sweep(absl::Time now);

  // Number of waiters.
  int64_t waiting() const;

 private:
  static void ResumeAll(const std::shared_ptr<Flight>& flight, Event event, const Elsewhere& elsewhere);

  using Place = std::pair<const void*, CacheKey>;

  struct PlaceHash {
    size_t operator()(const Place& place) const {
      return CacheKeyHash()(place.second) ^ reinterpret_cast<uintptr_t>(place.first);
    }
  };

  mutable absl::Mutex mutex_;
  // For each key the flight that later requests may join.
  // Not one of Abseil's tables, which are broken after an allocation that fails while they grow.
  std::unordered_map<Place, std::shared_ptr<Flight>, PlaceHash> joinable_ ABSL_GUARDED_BY(mutex_);
  // Flights with waiters, in no particular order.
  std::vector<std::shared_ptr<Flight>> waited_for_ ABSL_GUARDED_BY(mutex_);
  int64_t waiting_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace saccade::server
