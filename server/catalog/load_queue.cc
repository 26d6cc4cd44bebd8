#include "server/catalog/load_queue.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/passes_here.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

// Weight of the newest load in the mean over all.
constexpr double kNewest = 0.2;
// The shortest retry hint: a shorter one would only bring the client back while the load still runs.
constexpr absl::Duration kMinRetry = absl::Milliseconds(50);
// Maximum number of clients that are counted for a model. Bounds the memory for their keys.
constexpr size_t kMaxCountedClients = 64;

absl::Status Hinted(absl::Status status, absl::Duration after) {
  SetRetryAfter(status, std::max(after, kMinRetry));
  return status;
}

std::string Milliseconds(absl::Duration time) {
  return absl::StrCat(absl::ToInt64Milliseconds(absl::Ceil(time, absl::Milliseconds(1))), " ms");
}

}  // namespace

LoadQueue::LoadQueue(const LoadQueueOptions& options, Clock* clock, std::function<void()> ordered)
    : options_(options), clock_(clock), ordered_(std::move(ordered)) {}

absl::Duration LoadQueue::TimeLeft(const std::string& model, absl::Time now) const {
  const auto took = took_.find(model);
  const absl::Duration whole = took == took_.end() ? typical_ : took->second;
  return model == loading_ ? std::max(whole - (now - loading_since_), absl::ZeroDuration()) : whole;
}

absl::Duration LoadQueue::Expected(const std::string& model, absl::Time now) const {
  // Models are loaded one after the other; those that are ordered already come first.
  absl::Duration expected = TimeLeft(model, now);
  for (const auto& [name, wanted] : wanted_) {
    if (name != model) expected += TimeLeft(name, now);
  }
  return expected;
}

absl::Status LoadQueue::Check(const CallHead& call, absl::Time now) {
  if (!closed_.ok()) return closed_;
  const auto failure = failures_.find(call.model);
  if (failure != failures_.end() && now < failure->second.not_before) {
    const absl::Duration after = failure->second.not_before - now;
    return Hinted(absl::UnavailableError(
                      absl::StrCat("model '", call.model, "' could not be loaded: ", failure->second.reason,
                                   "; a request after ", Milliseconds(after), " tries again")),
                  after);
  }
  const auto [entry, is_new] = wanted_.try_emplace(call.model);
  Wanted& wanted = entry->second;
  if (is_new) wanted.number = next_number_++;
  if (wanted.clients.size() < kMaxCountedClients) wanted.clients.insert(call.client);
  if (const absl::Duration expected = Expected(call.model, now); now + expected > call.deadline) {
    absl::Status late = absl::UnavailableError(
        absl::StrCat("model '", call.model, "' is being loaded, which is expected to take ",
                     Milliseconds(expected), ", longer than the request's deadline allows; try again"));
    SetShedReason(late, ShedReason::kPredictedLate);
    return Hinted(std::move(late), expected);
  }
  if (wanted.waiters.size() >= options_.max_waiting_per_model || waiting_ >= options_.max_waiting) {
    absl::Status full = absl::ResourceExhaustedError(
        absl::StrCat(wanted.waiters.size(), " requests wait for model '", call.model, "' to be loaded, and ",
                     waiting_, " for all models; try again"));
    SetShedReason(full, ShedReason::kQueueFull);
    return Hinted(std::move(full), Expected(call.model, now));
  }
  return absl::OkStatus();
}

void LoadQueue::Await(const CallHead& call, Resume resume) {
  absl::Status refused;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_->Now();
    refused = Check(call, now);
    if (refused.ok()) {
      const absl::Time deadline = std::min(call.deadline, now + options_.max_wait);
      wanted_[call.model].waiters.push_back({deadline, call.cancellation, std::move(resume)});
      ++waiting_;
    }
  }
  // A model whose first requests cannot wait for it is loaded for the next ones.
  ordered_();
  if (!refused.ok()) std::move(resume)(std::move(refused));
}

std::optional<std::string> LoadQueue::MostWanted() const {
  absl::MutexLock lock(&mutex_);
  const auto most = std::max_element(wanted_.begin(), wanted_.end(), [](const auto& less, const auto& more) {
    const size_t fewer = less.second.clients.size();
    const size_t other = more.second.clients.size();
    if (fewer != other) return fewer < other;
    return less.second.number > more.second.number;
  });
  if (most == wanted_.end()) return std::nullopt;
  return most->first;
}

void LoadQueue::Begin(const std::string& model) {
  absl::MutexLock lock(&mutex_);
  loading_ = model;
  loading_since_ = clock_->Now();
}

std::vector<LoadQueue::Waiter> LoadQueue::Take(const std::string& model) {
  if (model == loading_) loading_.clear();
  const auto wanted = wanted_.find(model);
  if (wanted == wanted_.end()) return {};
  std::vector<Waiter> waiters = std::move(wanted->second.waiters);
  wanted_.erase(wanted);
  waiting_ -= waiters.size();
  return waiters;
}

void LoadQueue::Loaded(const std::string& model, absl::Duration took) {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    if (took > absl::ZeroDuration()) {
      typical_ = typical_ == absl::ZeroDuration() ? took : typical_ * (1 - kNewest) + took * kNewest;
      took_[model] = took;
    }
    failures_.erase(model);
    waiters = Take(model);
  }
  // The resumed requests' passes must not run on this thread: they would delay other requests and the next
  // load.
  const LimitPassesHere limit(PassesHere::kNone);
  for (Waiter& waiter : waiters) std::move(waiter.resume)(absl::OkStatus());
}

void LoadQueue::Failed(const std::string& model, const absl::Status& why) {
  std::vector<Waiter> waiters;
  absl::Duration pause;
  {
    absl::MutexLock lock(&mutex_);
    Failure& failure = failures_[model];
    pause = failure.backoff.Next();
    failure.not_before = clock_->Now() + pause;
    failure.reason = std::string(why.message());
    waiters = Take(model);
  }
  const absl::Status failed =
      Hinted(absl::UnavailableError(absl::StrCat("model '", model, "' could not be loaded: ", why.message())),
             pause);
  for (Waiter& waiter : waiters) std::move(waiter.resume)(failed);
}

void LoadQueue::Forget(const std::string& model, const absl::Status& why) {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    failures_.erase(model);
    took_.erase(model);
    waiters = Take(model);
  }
  for (Waiter& waiter : waiters) std::move(waiter.resume)(why);
}

void LoadQueue::Sweep() {
  std::vector<std::pair<Waiter, absl::Status>> ended;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_->Now();
    for (auto& [model, wanted] : wanted_) {
      std::erase_if(wanted.waiters, [&, name = model](Waiter& waiter) {
        mutex_.AssertHeld();
        absl::Status why;
        if (waiter.cancellation != nullptr && waiter.cancellation->cancelled()) {
          why = absl::CancelledError("the client cancelled the request");
        } else if (waiter.deadline <= now) {
          why = Hinted(absl::DeadlineExceededError(absl::StrCat("the deadline passed while model '", name,
                                                                "' was being loaded; try again")),
                       Expected(name, now));
        }
        if (why.ok()) return false;
        ended.emplace_back(std::move(waiter), std::move(why));
        return true;
      });
    }
    waiting_ -= ended.size();
  }
  for (auto& [waiter, why] : ended) std::move(waiter.resume)(std::move(why));
}

void LoadQueue::Close(const absl::Status& why) {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    closed_ = why;
    for (auto& [model, wanted] : wanted_) {
      for (Waiter& waiter : wanted.waiters) waiters.push_back(std::move(waiter));
    }
    wanted_.clear();
    waiting_ = 0;
  }
  for (Waiter& waiter : waiters) std::move(waiter.resume)(why);
}

size_t LoadQueue::waiting() const {
  absl::MutexLock lock(&mutex_);
  return waiting_;
}

}  // namespace saccade::server
