#include "server/catalog/load_queue.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/inline_passes.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// Weight of the newest load in the mean over all.
constexpr double kNewest = 0.2;
// The shortest retry hint: a shorter one would only bring the client back while the load still runs.
constexpr absl::Duration kMinRetry = absl::Milliseconds(50);
// Maximum number of clients that are counted for a model. Bounds the memory for their keys.
constexpr size_t kMaxCountedClients = 64;
// How long a model stays wanted that was asked for and that no request waits for any more.
constexpr absl::Duration kWantedFor = absl::Seconds(10);

absl::Status Hinted(absl::Status status, absl::Duration after) {
  SetRetryAfter(status, std::max(after, kMinRetry));
  return status;
}

std::string Milliseconds(absl::Duration time) {
  return absl::StrCat(absl::ToInt64Milliseconds(absl::Ceil(time, absl::Milliseconds(1))), " ms");
}

// Half of the places, and at least one, so that every client is served.
size_t HalfOf(size_t places) { return std::max<size_t>(1, places / 2); }

// An exception must end neither the thread nor the wait of the other requests. What the function holds is
// freed with it, and a call that is freed without an answer fails.
void ResumeOne(LoadQueue::Resume resume, absl::Status status) {
  try {
    std::move(resume)(std::move(status));
  } catch (const std::exception& error) {
    try {
      Log(LogLevel::kError, "a request that waited for its model failed",
          {{"error", absl::string_view(error.what())}});
    } catch (const std::exception&) {
      // There is no memory for the line.
    }
  }
}

}  // namespace

LoadQueue::LoadQueue(const LoadQueueOptions& options, Clock* clock, std::function<void()> ordered)
    : options_(options), clock_(clock), ordered_(std::move(ordered)) {}

bool LoadQueue::IsBefore(const Wanted& a, const Wanted& b) {
  if (a.clients.size() != b.clients.size()) return a.clients.size() > b.clients.size();
  if (a.waiters.empty() != b.waiters.empty()) return b.waiters.empty();
  return a.number < b.number;
}

LoadQueue::Load LoadQueue::ExpectedLoad(const std::string& model) const {
  const auto last = last_.find(model);
  return last == last_.end() ? typical_ : last->second;
}

absl::Duration LoadQueue::Expected(const std::string& model, absl::Time now) const {
  // By thread: the time until it has no load to run.
  std::vector<absl::Duration> busy(std::max<size_t>(options_.max_loads, 1), absl::ZeroDuration());
  const auto add = [&busy](absl::Duration took, bool alone) {
    if (alone) {
      const absl::Duration end = *std::max_element(busy.begin(), busy.end()) + took;
      std::fill(busy.begin(), busy.end(), end);
      return end;
    }
    return *std::min_element(busy.begin(), busy.end()) += took;
  };
  for (const auto& [name, running] : running_) {
    const absl::Duration left =
        std::max(ExpectedLoad(name).took - (now - running.since), absl::ZeroDuration());
    if (name == model) return left;
    add(left, running.alone);
  }
  for (const std::string& name : at_start_) {
    const absl::Duration end = add(ExpectedLoad(name).took, alone_at_start_);
    if (name == model) return end;
  }
  const auto own = wanted_.find(model);
  std::vector<Models::const_iterator> before;
  for (auto other = wanted_.begin(); other != wanted_.end(); ++other) {
    if (other != own && running_.count(other->first) == 0 && IsBefore(other->second, own->second))
      before.push_back(other);
  }
  std::sort(before.begin(), before.end(),
            [](const auto& a, const auto& b) { return IsBefore(a->second, b->second); });
  for (const auto& other : before) {
    const Load load = ExpectedLoad(other->first);
    add(load.took, load.alone);
  }
  const Load load = ExpectedLoad(model);
  return add(load.took, load.alone);
}

absl::Status LoadQueue::Note(const CallHead& call, absl::Time now) {
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
  wanted.last_asked = now;
  if (wanted.clients.size() < kMaxCountedClients) wanted.clients.insert(call.client);
  return absl::OkStatus();
}

absl::Status LoadQueue::Check(const CallHead& call, absl::Time now) const {
  const Wanted& wanted = wanted_.at(call.model);
  const absl::Duration expected = Expected(call.model, now);
  if (now + expected > call.deadline) {
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
    return Hinted(std::move(full), expected);
  }
  if (absl::Status share = CheckShare(call); !share.ok()) return Hinted(std::move(share), expected);
  return absl::OkStatus();
}

bool LoadQueue::HasCompany(const Wanted& wanted, const std::string& client) {
  return wanted.clients.size() > wanted.clients.count(client);
}

absl::Status LoadQueue::CheckShare(const CallHead& call) const {
  if (call.client.empty()) return absl::OkStatus();
  const auto own = [&call](const Wanted& wanted) {
    return static_cast<size_t>(
        std::count_if(wanted.waiters.begin(), wanted.waiters.end(),
                      [&call](const Waiter& waiter) { return waiter.client == call.client; }));
  };
  const auto refused = [](size_t held, const std::string& models) {
    absl::Status status = absl::ResourceExhaustedError(
        absl::StrCat(held, " requests of the client wait for ", models, " to be loaded, half of the places, ",
                     "because other clients ask for models, too; try again later"));
    SetShedReason(status, ShedReason::kClientRequests);
    return status;
  };
  // Requests are counted only if so many wait at all.
  const size_t half_of_model = HalfOf(options_.max_waiting_per_model);
  const Wanted& wanted = wanted_.at(call.model);
  if (wanted.waiters.size() >= half_of_model && HasCompany(wanted, call.client)) {
    const size_t held = own(wanted);
    if (held >= half_of_model) return refused(held, absl::StrCat("model '", call.model, "'"));
  }
  const size_t half = HalfOf(options_.max_waiting);
  if (waiting_ < half) return absl::OkStatus();
  size_t held = 0;
  bool has_company = false;
  for (const auto& [model, other] : wanted_) {
    held += own(other);
    has_company = has_company || HasCompany(other, call.client);
  }
  return held >= half && has_company ? refused(held, "models") : absl::OkStatus();
}

void LoadQueue::Await(const CallHead& call, Resume resume) {
  absl::Status refused;
  bool is_wanted = false;
  {
    absl::MutexLock lock(&mutex_);
    const absl::Time now = clock_->Now();
    refused = Note(call, now);
    is_wanted = wanted_.count(call.model) > 0;
    if (refused.ok()) refused = Check(call, now);
    if (refused.ok()) {
      const absl::Time deadline = std::min(call.deadline, now + options_.max_wait);
      wanted_[call.model].waiters.push_back(
          {call.client, deadline, call.cancellation, std::exchange(resume, nullptr)});
      ++waiting_;
    }
  }
  // A model whose first requests cannot wait for it is loaded for the next ones. One that could not be loaded
  // is wanted again after a while, and its requests until then cost the thread that loads nothing.
  if (is_wanted) ordered_();
  if (resume != nullptr) std::move(resume)(std::move(refused));
}

void LoadQueue::Want(const CallHead& call) {
  {
    absl::MutexLock lock(&mutex_);
    if (!Note(call, clock_->Now()).ok()) return;
  }
  ordered_();
}

std::optional<std::string> LoadQueue::MostWanted() const {
  absl::MutexLock lock(&mutex_);
  auto most = wanted_.end();
  for (auto other = wanted_.begin(); other != wanted_.end(); ++other) {
    if (running_.count(other->first) > 0) continue;
    if (most == wanted_.end() || IsBefore(other->second, most->second)) most = other;
  }
  if (most == wanted_.end()) return std::nullopt;
  return most->first;
}

std::vector<std::string> LoadQueue::WantedModels() const {
  absl::MutexLock lock(&mutex_);
  std::vector<std::string> names;
  names.reserve(wanted_.size());
  for (const auto& [name, wanted] : wanted_) names.push_back(name);
  return names;
}

void LoadQueue::ListAtStart(std::set<std::string> models) {
  absl::MutexLock lock(&mutex_);
  at_start_ = std::move(models);
}

void LoadQueue::EndAtStart(const std::string& model) {
  absl::MutexLock lock(&mutex_);
  at_start_.erase(model);
}

void LoadQueue::Begin(const std::string& model, bool alone) {
  absl::MutexLock lock(&mutex_);
  Running& running = running_[model];
  running = {clock_->Now(), alone, /*at_start=*/at_start_.erase(model) > 0};
  if (running.at_start) alone_at_start_ = alone;
}

void LoadQueue::End(const std::string& model) {
  absl::MutexLock lock(&mutex_);
  running_.erase(model);
}

std::vector<LoadQueue::Waiter> LoadQueue::Take(const std::string& model) {
  running_.erase(model);
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
      const auto running = running_.find(model);
      // A load at the start may have run alone because it was the first of its kind. Those that requests
      // cause need not.
      const bool alone = running != running_.end() && running->second.alone && !running->second.at_start;
      const bool is_first = typical_.took == absl::ZeroDuration();
      typical_ = {is_first ? took : typical_.took * (1 - kNewest) + took * kNewest, alone};
      last_[model] = {took, alone};
    }
    failures_.erase(model);
    waiters = Take(model);
  }
  // The resumed requests' passes must not run on this thread: they would delay other requests and the next
  // load.
  const LimitInlinePasses limit(InlinePasses::kNone);
  for (Waiter& waiter : waiters) ResumeOne(std::move(waiter.resume), absl::OkStatus());
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
  for (Waiter& waiter : waiters) ResumeOne(std::move(waiter.resume), failed);
}

void LoadQueue::Forget(const std::string& model, const absl::Status& why) {
  std::vector<Waiter> waiters;
  {
    absl::MutexLock lock(&mutex_);
    failures_.erase(model);
    last_.erase(model);
    waiters = Take(model);
  }
  for (Waiter& waiter : waiters) ResumeOne(std::move(waiter.resume), why);
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
    std::erase_if(wanted_, [&](const auto& entry) {
      mutex_.AssertHeld();
      return entry.second.waiters.empty() && entry.second.last_asked + kWantedFor <= now &&
             running_.count(entry.first) == 0;
    });
  }
  for (auto& [waiter, why] : ended) ResumeOne(std::move(waiter.resume), std::move(why));
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
  for (Waiter& waiter : waiters) ResumeOne(std::move(waiter.resume), why);
}

size_t LoadQueue::waiting() const {
  absl::MutexLock lock(&mutex_);
  return waiting_;
}

}  // namespace saccade::server
