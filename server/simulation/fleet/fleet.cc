// The event loop, and how a call goes from its client to a replica and back.
#include "server/simulation/fleet/fleet.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "server/core/retry_hint.h"

namespace saccade::server::simulation {
namespace {

// An attempt's number is that of its call, and its own within the call.
constexpr int kAttemptBits = 6;
constexpr int kMaxAttempts = (1 << kAttemptBits) - 1;
// If wake_at() is not in the future although there was no batch, the scheduler is asked again after this
// time.
constexpr Nanos kWakeAgainAfter = 10 * kMicrosecond;

Answer AnswerOf(const absl::Status& why) {
  if (absl::IsResourceExhausted(why)) return Answer::kRejected;
  if (absl::IsDeadlineExceeded(why)) return Answer::kLate;
  return absl::IsUnavailable(why) ? Answer::kUnavailable : Answer::kInternal;
}

std::optional<Nanos> HintOf(const absl::Status& why) {
  const std::optional<absl::Duration> after = RetryAfter(why);
  return after ? std::optional(Nanos(*after)) : std::nullopt;
}

}  // namespace

void Fleet::At(Nanos when, std::function<void(Nanos)> what) {
  actions_.push_back(std::move(what));
  Schedule({.at = when, .subject = actions_.size() - 1, .kind = Kind::kAction});
}

void Fleet::Schedule(Event event) {
  event.number = scheduled_++;
  events_.push_back(event);
  std::push_heap(events_.begin(), events_.end(), Later());
}

void Fleet::Run() {
  Schedule({.at = now_, .kind = Kind::kTick});
  Schedule({.at = now_, .kind = Kind::kArrival});
  while (!events_.empty()) {
    std::pop_heap(events_.begin(), events_.end(), Later());
    const Event event = events_.back();
    events_.pop_back();
    if (event.at > options_.until) break;
    now_ = event.at;
    clock_.Set(now_);
    Expire();
    Handle(event);
  }
}

void Fleet::Handle(const Event& event) {
  switch (event.kind) {
    case Kind::kArrival:
      return Arrive();
    case Kind::kSend:
      return Send(event.subject);
    case Kind::kDeliver:
      return Deliver(event);
    case Kind::kFinish:
      return FinishPass(event);
    case Kind::kWake:
      // A later event may have taken its place.
      if (replicas_[event.where]->asked_at == event.at) Ask(event.where);
      return;
    case Kind::kResponse:
      return Receive(event);
    case Kind::kTimeout: {
      const Call* const call = Find(event.subject);
      if (call != nullptr && call->open) Retry(event.subject >> kAttemptBits, Answer::kLate, std::nullopt);
      return;
    }
    case Kind::kView:
      clients_[event.where].told = false;
      return clients_[event.where].balancer.SetReplicas(Ready());
    case Kind::kTick:
      return Tick();
    case Kind::kAction:
      return actions_[event.subject](now_);
  }
}

void Fleet::Arrive() {
  // Calls that could not end before the run does would count as failed.
  if (now_ + options_.deadline > options_.until) return;
  Schedule({.at = now_ + FromSeconds(random_.Exponential() / rate_), .kind = Kind::kArrival});
  const uint64_t number = first_call_ + calls_.size();
  calls_.push_back({.began = now_, .client = static_cast<int>(random_.Below(options_.clients))});
  ++seconds_.back().calls;
  Send(number);
}

void Fleet::Expire() {
  while (!calls_.empty() && calls_.front().began + options_.deadline < now_) {
    if (!calls_.front().ended) End(calls_.front(), false);
    calls_.pop_front();
    ++first_call_;
  }
}

Fleet::Call* Fleet::Find(uint64_t attempt) {
  const uint64_t number = attempt >> kAttemptBits;
  if (number < first_call_) return nullptr;
  Call& call = calls_[number - first_call_];
  const bool latest = static_cast<int>(attempt & kMaxAttempts) == call.attempts;
  return latest && !call.ended ? &call : nullptr;
}

void Fleet::Send(uint64_t number) {
  if (number < first_call_ || calls_[number - first_call_].ended) return;
  Call& call = calls_[number - first_call_];
  ++call.attempts;
  ++seconds_.back().attempts;
  const std::optional<int> replica = clients_[call.client].balancer.Pick(now_);
  if (!replica) return Retry(number, Answer::kUnavailable, std::nullopt);
  call.open = true;
  call.replica = *replica;
  const uint64_t attempt = number << kAttemptBits | static_cast<uint64_t>(call.attempts);
  Schedule({.at = now_ + options_.network, .subject = attempt, .where = *replica, .kind = Kind::kDeliver});
  if (options_.retry.attempt_timeout == kNever) return;
  Schedule({.at = now_ + options_.retry.attempt_timeout, .subject = attempt, .kind = Kind::kTimeout});
}

void Fleet::Deliver(const Event& event) {
  Replica& replica = *replicas_[event.where];
  if (replica.state == ReplicaState::kSilent) return;
  if (replica.state == ReplicaState::kGone)
    return Respond(event.subject, event.where, Answer::kUnavailable, std::nullopt);
  const uint64_t number = event.subject >> kAttemptBits;
  if (number < first_call_) return;
  const Call& call = calls_[number - first_call_];
  // The deadline goes with the request: that of the attempt, if it is earlier.
  const Nanos deadline = std::min(call.began + options_.deadline, now_ + options_.retry.attempt_timeout);
  const Ledger::Entry entry = {
      .stream = event.where, .client = call.client, .arrival = now_, .deadline = deadline};
  BatchTask::Traits traits;
  traits.arrival = ToTime(now_);
  traits.deadline = ToTime(deadline);
  auto task = std::make_unique<SimTask>(traits, static_cast<int64_t>(event.subject), 0, entry,
                                        static_cast<SimTask::Watcher*>(this));
  const absl::Status taken = replica.Take(task, now_);
  if (!taken.ok()) {
    task->End();
    Respond(event.subject, event.where, AnswerOf(taken), HintOf(taken));
  }
  Ask(event.where);
}

void Fleet::Respond(uint64_t attempt, int replica, Answer answer, std::optional<Nanos> hint) {
  Replica& from = *replicas_[replica];
  VersionTally& tally = versions_[from.build().version];
  ++tally.ended;
  tally.faults += answer == Answer::kInternal || answer == Answer::kUnavailable;
  from.CountEnded(answer == Answer::kInternal);
  tally.late += answer == Answer::kLate;
  float after = -1;
  // The protocols spread the hints (server/protocols/retry_jitter.h).
  if (hint) after = static_cast<float>(hint->count() * 1e-9 * (0.5 + random_.Uniform()));
  Schedule({.at = now_ + options_.network,
            .subject = attempt,
            .where = replica,
            .kind = Kind::kResponse,
            .answer = answer,
            .load = static_cast<float>(from.load()),
            .weight = static_cast<float>(from.weight()),
            .hint = after});
}

void Fleet::Receive(const Event& event) {
  // Null if the call has ended, or has given up this attempt.
  Call* const call = Find(event.subject);
  if (call == nullptr) return;
  Client& client = clients_[call->client];
  const bool refused = event.answer == Answer::kUnavailable;
  Close(*call, refused ? std::nullopt : std::optional<double>(event.load));
  if (refused) {
    client.balancer.Refused(event.where, now_);
  } else {
    client.balancer.Report(event.where, event.weight, now_);
  }
  if (event.answer == Answer::kOk) {
    client.budget.Succeeded();
    return End(*call, true);
  }
  Retry(event.subject >> kAttemptBits, event.answer,
        event.hint < 0 ? std::nullopt : std::optional(FromSeconds(event.hint)));
}

void Fleet::Retry(uint64_t number, Answer answer, std::optional<Nanos> hint) {
  Call& call = calls_[number - first_call_];
  Client& client = clients_[call.client];
  const RetryOptions& retry = options_.retry;
  Close(call, std::nullopt);
  // The attempt's own time is over, and not the call's.
  const bool late = answer == Answer::kLate && retry.attempt_timeout != kNever;
  const bool repeatable =
      retry.at_once || late || answer == Answer::kUnavailable || (answer == Answer::kRejected && hint);
  if (repeatable) client.budget.Failed();
  const double doubled =
      std::min(retry.max_pause / kSecond, retry.first_pause / kSecond * std::pow(2, call.attempts - 1));
  Nanos pause = hint ? *hint : FromSeconds(doubled * (0.5 + random_.Uniform()));
  if (retry.at_once || late) pause = Nanos();
  const bool in_time = now_ + pause < call.began + options_.deadline;
  if (!repeatable || !in_time || call.attempts >= std::min(retry.attempts, kMaxAttempts) ||
      !client.budget.allows())
    return End(call, false);
  Schedule({.at = now_ + pause, .subject = number, .kind = Kind::kSend});
}

void Fleet::Close(Call& call, std::optional<double> load) {
  if (std::exchange(call.open, false)) clients_[call.client].balancer.Closed(call.replica, load);
}

void Fleet::End(Call& call, bool in_time) {
  ++(call.ended ? ended_twice_ : ended_);
  call.ended = true;
  Close(call, std::nullopt);
  const auto second = static_cast<size_t>(call.began / kSecond);
  seconds_[second].in_time += in_time && now_ <= call.began + options_.deadline;
}

void Fleet::FinishPass(const Event& event) {
  Replica& replica = *replicas_[event.where];
  bool failed = false;
  const auto tasks = replica.EndPass(event.instance, now_, &failed);
  seconds_.back().passes += tasks.empty() ? 0 : 1;
  seconds_.back().computed += static_cast<int64_t>(tasks.size());
  for (const auto& task : tasks) {
    SimTask& done = AsSimTask(task);
    done.End();
    versions_[replicas_[event.where]->build().version].CountTime(now_ - done.entry().arrival);
    Answer answer = failed ? Answer::kInternal : Answer::kOk;
    if (!failed && now_ > done.entry().deadline) answer = Answer::kLate;
    Respond(static_cast<uint64_t>(done.id()), event.where, answer, std::nullopt);
  }
  Ask(event.where);
}

void Fleet::Ask(int number) {
  Replica& replica = *replicas_[number];
  while (const std::optional<Replica::Pass> pass = replica.StartPass(now_)) {
    Schedule({.at = pass->ends, .where = number, .instance = pass->instance, .kind = Kind::kFinish});
  }
  Nanos wake = replica.wake_at();
  if (wake <= now_) wake = now_ + kWakeAgainAfter;
  if (wake == replica.asked_at) return;
  replica.asked_at = wake;
  if (wake != kNever) Schedule({.at = wake, .where = number, .kind = Kind::kWake});
}

void Fleet::OnRejected(SimTask& task, const absl::Status& why) {
  if (!task.End()) return;
  const Ledger::Entry& entry = task.entry();
  versions_[replicas_[entry.stream]->build().version].CountTime(now_ - entry.arrival);
  Respond(static_cast<uint64_t>(task.id()), task.entry().stream, AnswerOf(why), HintOf(why));
}

void Fleet::OnLost(const SimTask& task) {
  if (noticed_) Respond(static_cast<uint64_t>(task.id()), destroyed_, Answer::kUnavailable, std::nullopt);
}

}  // namespace saccade::server::simulation
