// The items of a call that are in one bucket: the unit that is queued, and from which a forward pass is
// composed.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/tasks/result.h"
#include "server/batching/batch_task.h"
#include "server/engine/item.h"
#include "server/engine/predict_call.h"

namespace saccade::server {

// Not thread-safe; owned by one thread at a time.
class CallShare final : public BatchTask {
 public:
  // `items` are indices into the call's items, all of the same bucket.
  CallShare(std::shared_ptr<PredictCall> call, std::vector<size_t> items);
  // The only share of a call with named tensors.
  explicit CallShare(std::shared_ptr<PredictCall> call);
  // Shares of one bucket that are queued together, so that one pass computes all of them. TakeParts() takes
  // them out for the pass; until then only BeginWait(), EndWait() and Reject() may be called, which apply to
  // each of them. REQUIRES: there is at least one.
  explicit CallShare(std::vector<std::unique_ptr<CallShare>> parts);
  // Fails its call with INTERNAL if the share was not ended.
  ~CallShare() override;

  // Returns the shares that are queued together in this one; empty if it has no parts.
  std::vector<std::unique_ptr<CallShare>> TakeParts() { return std::move(parts_); }

  // REQUIRES: the share has not ended.
  const PredictCall& call() const { return *call_; }
  // Whether no other share computes a part of the call.
  bool is_whole_call() const { return items_.size() == call_->items().size(); }

  // The share's i-th item, 0 <= i < size().
  const Item& item(int64_t i) const { return call_->items()[items_[i]]; }

  // REQUIRES: the call has named tensors.
  const NamedTensors& tensors() const { return std::get<NamedTensors>(call_->request().input); }

  // The call's record; null if the call is not recorded.
  CallRecord* record() const { return call_->request().record.get(); }

  // The attention maps that the call asks for; nullopt if none.
  const std::optional<models::ExplanationWish>& explain() const { return call_->request().explain; }
  void Explain(models::Explanation explanation) { call_->Explain(std::move(explanation)); }

  // Reports progress of the share's i-th item, from 0 to 1. Returns false if the answer is no longer needed.
  bool Advance(int64_t i, double done) const { return call_->Advance(items_[i], done); }

  // Marks the share as waiting for a forward pass, until EndWait() or its end. While any share of a call
  // waits, the call counts once in `*requests`, which must outlive the call.
  void BeginWait(std::atomic<int64_t>* requests);
  void EndWait();

  // Notes the failure of a pass that is tried once more on another instance. If that is not possible in time,
  // Reject() ends the call with it.
  void NoteFailure(absl::Status why) { failure_ = std::move(why); }
  // OK if no pass has failed.
  const absl::Status& failure() const { return failure_; }

  // Each share is ended once, by one of these.
  void Answer(ShareAnswer answer, const ForwardPass& pass);
  void FailComputed(absl::Status why);
  void Reject(absl::Status why) override;

 private:
  // Returns the call, for its end.
  std::shared_ptr<PredictCall> TakeCall();

  // Null once the share has ended, and if it has parts.
  std::shared_ptr<PredictCall> call_;
  const std::vector<size_t> items_;
  std::vector<std::unique_ptr<CallShare>> parts_;
  absl::Status failure_;
  // Null unless it waits.
  std::atomic<int64_t>* waiting_in_ = nullptr;
};

using Shares = std::vector<std::unique_ptr<CallShare>>;

// Splits the call into shares of at most `max_items` items of one bucket, in the order of the buckets' first
// items. A call with named tensors has one share. REQUIRES: the call has at least one item, or named tensors.
Shares ShareOut(std::shared_ptr<PredictCall> call, int64_t max_items = std::numeric_limits<int64_t>::max());

// Makes one share of several, to be queued together. REQUIRES: they are of one bucket, and have at most as
// many items as a pass.
Shares Joined(Shares shares);
// Replaces shares that are queued together by their parts.
Shares Apart(Shares shares);

// Submits a call's shares to its model, and rejects those that it does not take. None of them waits for
// another's pass.
void SubmitShares(ReadyModel& model, Shares shares);

}  // namespace saccade::server
