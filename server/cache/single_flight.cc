#include "server/cache/single_flight.h"

#include <algorithm>
#include <exception>
#include <new>

#include "server/core/inline_passes.h"

namespace saccade::server {
namespace {

// Errors that concern the leader's own call, not its input.
bool IsOfTheLeader(const absl::Status& outcome) {
  return absl::IsCancelled(outcome) || absl::IsDeadlineExceeded(outcome) ||
         absl::IsResourceExhausted(outcome) || absl::IsUnavailable(outcome);
}

SingleFlight::Event EventOf(const absl::Status& outcome) {
  if (outcome.ok()) return SingleFlight::Event::kAnswered;
  return IsOfTheLeader(outcome) ? SingleFlight::Event::kLeaderLeft : SingleFlight::Event::kLeaderFailed;
}

}  // namespace

// Guarded by the mutex of the SingleFlight, until it has landed.
class SingleFlight::Flight {
 private:
  friend class SingleFlight;

  Place place;
  int priority = 0;
  absl::Time deadline;
  int64_t turn = 0;
  std::vector<Waiter> waiters;
  bool has_landed = false;
  // The number of waiters that were resumed, once the flight has landed.
  size_t resumed = 0;
};

std::shared_ptr<SingleFlight::Flight> SingleFlight::Join(const void* scope, const CacheKey& key,
                                                         Waiter& waiter) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Flight>& joinable = joinable_[{scope, key}];
  if (joinable != nullptr && joinable->priority >= waiter.priority && joinable->deadline <= waiter.deadline &&
      joinable->turn <= waiter.turn) {
    if (joinable->waiters.empty()) waited_for_.push_back(joinable);
    joinable->waiters.push_back(std::move(waiter));
    ++waiting_;
    return nullptr;
  }
  // Otherwise this request takes the place of one that is being computed; that one keeps its waiters.
  joinable = std::make_shared<Flight>();
  joinable->place = {scope, key};
  joinable->priority = waiter.priority;
  joinable->deadline = waiter.deadline;
  joinable->turn = waiter.turn;
  return joinable;
}

void SingleFlight::Land(const std::shared_ptr<Flight>& flight, const absl::Status& outcome,
                        const Elsewhere& elsewhere) {
  {
    absl::MutexLock lock(&mutex_);
    if (std::exchange(flight->has_landed, true)) return;
    const auto found = joinable_.find(flight->place);
    if (found != joinable_.end() && found->second == flight) joinable_.erase(found);
    std::erase(waited_for_, flight);
    waiting_ -= static_cast<int64_t>(flight->waiters.size());
  }
  ResumeAll(flight, EventOf(outcome), elsewhere);
}

// One thread at a time. Those that join again do so one after the other: the first of them leads.
void SingleFlight::ResumeAll(const std::shared_ptr<Flight>& flight, Event event, const Elsewhere& elsewhere) {
  // The waiters do not wait for each other's passes.
  const LimitInlinePasses limit(InlinePasses::kNone);
  std::vector<Waiter>& waiters = flight->waiters;
  std::exception_ptr failed;
  while (flight->resumed < waiters.size()) {
    const size_t end = std::min(waiters.size(), flight->resumed + kResumedAtOnce);
    while (flight->resumed < end) {
      // Freed with what it holds before the next one.
      Waiter waiter = std::move(waiters[flight->resumed++]);
      try {
        std::move(waiter.resume)(event, absl::OkStatus());
      } catch (...) {
        // The others are resumed all the same.
        failed = std::current_exception();
      }
    }
    if (end == waiters.size() || elsewhere == nullptr) continue;
    try {
      if (elsewhere([flight, event, elsewhere] { ResumeAll(flight, event, elsewhere); })) break;
    } catch (const std::bad_alloc&) {
      // As if there was no room.
    }
  }
  if (failed) std::rethrow_exception(failed);
}

void SingleFlight::Sweep(absl::Time now) {
  std::vector<std::pair<Waiter, absl::Status>> expired;
  {
    absl::MutexLock lock(&mutex_);
    for (const std::shared_ptr<Flight>& flight : waited_for_) {
      std::erase_if(flight->waiters, [&](Waiter& waiter) {
        absl::Status alive = waiter.check(now);
        if (alive.ok()) return false;
        expired.emplace_back(std::move(waiter), std::move(alive));
        return true;
      });
    }
    std::erase_if(waited_for_, [](const auto& flight) { return flight->waiters.empty(); });
    waiting_ -= static_cast<int64_t>(expired.size());
  }
  for (auto& [waiter, why] : expired) std::move(waiter.resume)(Event::kExpired, std::move(why));
}

int64_t SingleFlight::waiting() const {
  absl::MutexLock lock(&mutex_);
  return waiting_;
}

}  // namespace saccade::server
