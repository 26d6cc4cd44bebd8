#include "server/engine/passes.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "server/core/core_wait.h"
#include "server/core/inline_passes.h"
#include "server/engine/device_lost.h"
#include "server/engine/pass_copies.h"
#include "server/logging/log.h"
#include "server/tracing/call_record.h"

namespace saccade::server {
namespace {

int64_t SizeOf(const Shares& shares) {
  int64_t size = 0;
  for (const auto& share : shares) size += share->size();
  return size;
}

// A call whose answer cannot be made is answered with INTERNAL when it is destroyed; the pass goes on.
void AnswerShare(CallShare& share, ShareAnswer answer, const ForwardPass& pass) {
  try {
    share.Answer(std::move(answer), pass);
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "an answer could not be made", {{"what", error.what()}});
  }
}

void WriteDown(const Shares& shares, PassFacts pass) {
  std::vector<CallRecord*> records;
  for (const auto& share : shares) {
    if (share->record() != nullptr) records.push_back(share->record());
  }
  if (records.empty()) return;
  pass.requests = static_cast<int64_t>(shares.size());
  CallRecord::AddPass(records, pass);
}

// Without memory the pass is missing in the records, and the answers are given all the same.
void WriteDownSafely(const Shares& shares, const PassFacts& pass) {
  try {
    WriteDown(shares, pass);
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "a pass could not be recorded", {{"what", error.what()}});
  }
}

// Likewise, it is not copied.
std::unique_ptr<PassCopies> CopiesOf(const Shares& shares, const std::vector<ShareAnswer>& answers) {
  try {
    return PassCopies::Choose(shares, answers);
  } catch (const std::exception& error) {
    Log(LogLevel::kError, "a pass could not be copied", {{"what", error.what()}});
    return nullptr;
  }
}

// A batch that is computed in one or more passes.
class Passes {
 public:
  Passes(Clock* clock, ModelMetrics* metrics, const RunPass& run)
      : clock_(*clock), metrics_(*metrics), run_(run) {}

  void Compute(Shares shares);
  PassEnd End() &&;

 private:
  // An allocation that fails before or after the network's own code fails the pass, not the instance's
  // thread.
  absl::StatusOr<std::vector<ShareAnswer>> Run(const Shares& shares) const;
  // Computes `together` shares at a time, one pass after the other.
  void ComputeApart(Shares shares, size_t together);
  void Fail(Shares shares, const absl::Status& why);

  Clock& clock_;
  ModelMetrics& metrics_;
  const RunPass& run_;
  PassEnd end_;
  int tried_ = 0;
  // OK unless the device is lost.
  absl::Status lost_;
};

absl::StatusOr<std::vector<ShareAnswer>> Passes::Run(const Shares& shares) const {
  try {
    return run_(shares);
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "out of memory beside the forward pass; send fewer or smaller items at once");
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

void Passes::Compute(Shares shares) {
  if (!lost_.ok()) return Fail(std::move(shares), lost_);
  ++tried_;
  const int64_t size = SizeOf(shares);
  // All shares are of one model.
  const bool is_timed = shares.front()->call().model()->times_passes();
  const absl::Duration waited_before = is_timed ? TimeWithoutCore() : absl::ZeroDuration();
  const absl::Time started = clock_.Now();
  auto answers = Run(shares);
  const absl::Time ended = clock_.Now();
  const absl::Duration waited = is_timed ? TimeWithoutCore() - waited_before : absl::ZeroDuration();
  WriteDownSafely(shares,
                  {.started = started, .ended = ended, .batch_size = size, .status = answers.status()});
  if (answers.ok()) {
    end_.part = true;
    metrics_.RecordBatch(size, ended - started);
    const std::unique_ptr<PassCopies> copies = CopiesOf(shares, *answers);
    const ForwardPass pass = {size, started, ended, waited, copies.get()};
    for (size_t i = 0; i < shares.size(); ++i) {
      // An answer may start another call. Its pass must not run on this thread, which has more answers to
      // give.
      const LimitInlinePasses limit(i + 1 < shares.size() ? InlinePasses::kNone : InlinePasses::kOwn);
      AnswerShare(*shares[i], std::move((*answers)[i]), pass);
      shares[i].reset();
    }
    if (copies != nullptr) copies->Send();
    return;
  }
  if (IsDeviceLost(answers.status())) lost_ = answers.status();
  const bool no_memory = absl::IsResourceExhausted(answers.status());
  if (no_memory) end_.no_room_for = end_.no_room_for == 0 ? size : std::min(end_.no_room_for, size);
  if (shares.size() == 1 || !lost_.ok()) {
    Fail(std::move(shares), answers.status());
  } else {
    const size_t together = no_memory ? (shares.size() + 1) / 2 : 1;
    ComputeApart(std::move(shares), together);
  }
}

void Passes::ComputeApart(Shares shares, size_t together) {
  for (size_t first = 0; first < shares.size(); first += together) {
    const auto begin = shares.begin() + static_cast<std::ptrdiff_t>(first);
    const auto count = static_cast<std::ptrdiff_t>(std::min(together, shares.size() - first));
    Compute(Shares(std::make_move_iterator(begin), std::make_move_iterator(begin + count)));
  }
}

void Passes::Fail(Shares shares, const absl::Status& why) {
  const bool by_input = !absl::IsInternal(why) && !IsDeviceLost(why);
  for (auto& share : shares) {
    if (by_input) {
      share->FailComputed(why);
    } else {
      end_.failed.push_back({std::move(share), why});
    }
  }
}

PassEnd Passes::End() && {
  end_.device_lost = !lost_.ok();
  // What a lost GPU leaves is computed on another one.
  if (end_.part && lost_.ok()) {
    for (auto& [share, why] : end_.failed) share->FailComputed(std::move(why));
    end_.failed.clear();
  }
  if (end_.part && tried_ == 1) {
    end_.whole = true;
    end_.part = false;
  }
  return std::move(end_);
}

}  // namespace

PassEnd ComputeShares(Shares shares, Clock* clock, ModelMetrics* metrics, const RunPass& run) {
  if (shares.empty()) return {};
  Passes passes(clock, metrics, run);
  passes.Compute(std::move(shares));
  return std::move(passes).End();
}

}  // namespace saccade::server
