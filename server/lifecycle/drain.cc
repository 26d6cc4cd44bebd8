#include "server/lifecycle/drain.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "absl/strings/str_cat.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// How often the requests that remain are counted.
constexpr absl::Duration kBetweenSweeps = absl::Milliseconds(100);
constexpr absl::Duration kPollInterval = absl::Milliseconds(20);

// Why accepted requests end without an answer, see DrainFacts::cut_requests.
constexpr absl::string_view kWhyCut =
    "their clients did not read the answers in time (--min-transfer-rate), or their connections were too old "
    "(--grpc-max-connection-age-grace)";

bool IsEnd(DrainState state) { return state == DrainState::kDone || state == DrainState::kTimedOut; }

// Runs `close` on a thread of its own; here if the system has no thread left.
std::thread StartClosing(const std::function<void()>& close,
                         const std::shared_ptr<std::atomic<bool>>& closed) {
  const auto run = [close, closed] {
    close();
    closed->store(true);
  };
  try {
    return std::thread(run);
  } catch (const std::system_error&) {
    Log(LogLevel::kWarning, "no thread is left to close the daemon, so that its end may take long");
  }
  run();
  return {};
}

class Drainer {
 public:
  Drainer(const DrainOptions& options, const DrainHooks& hooks, Clock& clock,
          absl::FunctionRef<bool(absl::Duration)> await_signal)
      : options_(options), hooks_(hooks), clock_(clock), await_signal_(await_signal) {
    facts_.ends = true;
  }

  absl::Status Run() {
    while (!IsEnd(position_.state)) {
      Look();
      const DrainPosition next = NextPosition(options_, position_, facts_);
      if (next.state != position_.state) {
        const DrainState left = position_.state;
        position_ = next;
        Enter(left);
      } else {
        Wait();
      }
    }
    if (closer_.joinable()) {
      if (position_.state == DrainState::kDone) closer_.join();
      if (position_.state == DrainState::kTimedOut) closer_.detach();
    }
    return outcome_;
  }

 private:
  void Look() {
    facts_.now = clock_.Now();
    facts_.closed = closed_->load();
    if (position_.state == DrainState::kClosing) return;
    if (hooks_.sweep != nullptr) hooks_.sweep();
    hooks_.count(facts_);
  }

  void Wait() {
    if (position_.state == DrainState::kFinishing && facts_.accepted == 0 &&
        facts_.now >= position_.since + std::min(options_.upload_grace, options_.timeout / 2)) {
      hooks_.end_unfinished();
    }
    absl::Duration wait = kPollInterval;
    if (position_.state == DrainState::kLameDuck) wait = position_.since + options_.lame_duck - facts_.now;
    if (position_.state == DrainState::kRefusing) wait = position_.since + options_.go_away - facts_.now;
    if (hooks_.sweep != nullptr) wait = std::min(wait, kBetweenSweeps);
    if (await_signal_(wait)) facts_.hurry = true;
  }

  void Enter(DrainState left) {
    switch (position_.state) {
      case DrainState::kServing:
        return;
      case DrainState::kNotReady:
        Log(LogLevel::kInfo, "draining: reporting NOT_SERVING, still accepting requests",
            {{"for", options_.lame_duck}});
        hooks_.report_not_ready();
        hooks_.refuse_loads();
        return;
      case DrainState::kLameDuck:
        return;
      case DrainState::kRefusing:
        Log(LogLevel::kInfo, "draining: telling clients to connect elsewhere",
            {{"requests", facts_.accepted}, {"open", static_cast<int64_t>(facts_.open_requests)}});
        hooks_.go_away();
        return;
      case DrainState::kFinishing:
        hooks_.refuse_requests();
        Log(LogLevel::kInfo, "draining: finishing accepted requests",
            {{"requests", facts_.accepted}, {"open", static_cast<int64_t>(facts_.open_requests)}});
        return;
      case DrainState::kClosing:
        LogDrained();
        closer_ = StartClosing(hooks_.close, closed_);
        return;
      case DrainState::kDone:
        if (facts_.cut_requests > 0) outcome_ = absl::DataLossError(Answered());
        return;
      case DrainState::kTimedOut:
        outcome_ = TimedOut(left);
        return;
    }
  }

  void LogDrained() const {
    if (facts_.cut_requests == 0) {
      Log(LogLevel::kInfo, "drained: every accepted request was answered");
    } else {
      Log(LogLevel::kWarning, "drained: not every accepted request was answered",
          {{"cut", facts_.cut_requests}, {"why", kWhyCut}});
    }
  }

  // What became of the accepted requests.
  std::string Answered() const {
    if (facts_.cut_requests == 0) return "every accepted request was answered";
    return absl::StrCat(facts_.cut_requests, " accepted requests were cut during the drain, because ",
                        kWhyCut);
  }

  absl::Status TimedOut(DrainState left) const {
    if (left == DrainState::kClosing) {
      return absl::DeadlineExceededError(
          absl::StrCat(Answered(), facts_.cut_requests == 0 ? ", but" : "; moreover,",
                       " the models and ports could not be closed within --drain-timeout-seconds (state "
                       "closing)"));
    }
    return absl::DeadlineExceededError(absl::StrCat(
        facts_.accepted, " accepted requests did not finish within --drain-timeout-seconds (state ",
        NameOf(left), "; ", facts_.open_requests, " requests are not completely answered",
        facts_.cut_requests == 0 ? "" : absl::StrCat("; ", Answered()), ")"));
  }

  const DrainOptions& options_;
  const DrainHooks& hooks_;
  Clock& clock_;
  const absl::FunctionRef<bool(absl::Duration)> await_signal_;
  DrainFacts facts_;
  DrainPosition position_;
  absl::Status outcome_;
  // Runs `close`. Shared with it, because it may outlive this object.
  std::thread closer_;
  const std::shared_ptr<std::atomic<bool>> closed_ = std::make_shared<std::atomic<bool>>(false);
};

}  // namespace

absl::string_view NameOf(DrainState state) {
  switch (state) {
    case DrainState::kServing:
      return "serving";
    case DrainState::kNotReady:
      return "not_ready";
    case DrainState::kLameDuck:
      return "lame_duck";
    case DrainState::kRefusing:
      return "refusing";
    case DrainState::kFinishing:
      return "finishing";
    case DrainState::kClosing:
      return "closing";
    case DrainState::kDone:
      return "done";
    case DrainState::kTimedOut:
      return "timed_out";
  }
  return "unknown";
}

DrainPosition NextPosition(const DrainOptions& options, const DrainPosition& position,
                           const DrainFacts& facts) {
  const auto enter = [&](DrainState state, absl::Time deadline) {
    return DrainPosition{state, facts.now, deadline};
  };
  const absl::Duration spent = facts.now - position.since;
  const bool is_late = facts.now >= position.deadline;
  switch (position.state) {
    case DrainState::kServing:
      return facts.ends ? enter(DrainState::kNotReady, position.deadline) : position;
    case DrainState::kNotReady:
      return enter(DrainState::kLameDuck, position.deadline);
    case DrainState::kLameDuck:
      if (!facts.hurry && spent < options.lame_duck) return position;
      return enter(DrainState::kRefusing, position.deadline);
    case DrainState::kRefusing:
      if (spent < options.go_away) return position;
      return enter(DrainState::kFinishing, facts.now + options.timeout);
    case DrainState::kFinishing:
      if (facts.accepted == 0 && facts.open_requests == 0)
        return enter(DrainState::kClosing, std::max(position.deadline, facts.now + options.closing));
      return is_late ? enter(DrainState::kTimedOut, position.deadline) : position;
    case DrainState::kClosing:
      if (facts.closed) return enter(DrainState::kDone, position.deadline);
      return is_late ? enter(DrainState::kTimedOut, position.deadline) : position;
    case DrainState::kDone:
    case DrainState::kTimedOut:
      return position;
  }
  return position;
}

absl::Status Drain(const DrainOptions& options, const DrainHooks& hooks, Clock& clock,
                   absl::FunctionRef<bool(absl::Duration)> await_signal) {
  return Drainer(options, hooks, clock, await_signal).Run();
}

bool CloseWithin(absl::Duration max, const std::function<void()>& close, Clock& clock,
                 absl::FunctionRef<bool(absl::Duration)> await_signal) {
  const auto closed = std::make_shared<std::atomic<bool>>(false);
  std::thread closer = StartClosing(close, closed);
  const absl::Time deadline = clock.Now() + max;
  while (!closed->load() && clock.Now() < deadline) await_signal(kPollInterval);
  const bool in_time = closed->load();
  if (!closer.joinable()) return in_time;
  if (in_time) {
    closer.join();
  } else {
    closer.detach();
  }
  return in_time;
}

}  // namespace saccade::server
