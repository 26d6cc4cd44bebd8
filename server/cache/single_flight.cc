#include "server/cache/single_flight.h"

#include <algorithm>

#include "server/core/passes_here.h"

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

// Guarded by the mutex of the SingleFlight.
class SingleFlight::Flight {
 private:
  friend class SingleFlight;

  Place place;
  int priority = 0;
  absl::Time deadline;
  std::vector<Waiter> waiters;
};

std::shared_ptr<SingleFlight::Flight> SingleFlight::Join(const void* scope, const CacheKey& key,
                                                         Waiter& waiter) {
  absl::MutexLock lock(&mutex_);
  std::shared_ptr<Flight>& joinable = joinable_[{scope, key}];
  if (joinable != nullptr && joinable->priority >= waiter.priority && joinable->deadline <= waiter.deadline) {
    if (joinable->waiters.empty()) waited_for_.push_back(joinable);
    joinable->waiters.push_back(std::move(waiter));
    ++waiting_;
    return nullptr;
  }
  // A more urgent request takes the place of one that is being computed; that one keeps its waiters.
  joinable = std::make_shared<Flight>();
  joinable->place = {scope, key};
  joinable->priority = waiter.priority;
  joinable->deadline = waiter.deadline;
  return joinable;
}

void SingleFlight::Land(const std::shared_ptr<Flight>& flight, const absl::Status& outcome) {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    const auto found = joinable_.find(flight->place);
    if (found != joinable_.end() && found->second == flight) joinable_.erase(found);
    std::erase(waited_for_, flight);
    waiters = std::exchange(flight->waiters, {});
    waiting_ -= static_cast<int64_t>(waiters.size());
  }
  // The waiters do not wait for each other's passes.
  const LimitPassesHere limit(PassesHere::kNone);
  // Those that join again do so one after the other: the first of them leads.
  for (Waiter& waiter : waiters) std::move(waiter.resume)(EventOf(outcome), absl::OkStatus());
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
