// What of a call is in one bucket: what its queue holds, and what a forward pass is made of.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "models/tasks/result.h"
#include "server/batching/batch_task.h"
#include "server/pipeline/item.h"
#include "server/pipeline/predict_call.h"

namespace saccade::server {

// Owned by one thread at a time.
class CallShare final : public BatchTask {
 public:
  // `items` are indices of the call's, all in one bucket.
  CallShare(std::shared_ptr<PredictCall> call, std::vector<size_t> items);
  // All of a call of named tensors.
  explicit CallShare(std::shared_ptr<PredictCall> call);
  // A share that nobody ended fails its call with INTERNAL.
  ~CallShare() override;

  // The i-th of its own, of which there are size().
  const Item& item(int64_t i) const { return call_->items()[items_[i]]; }

  // REQUIRES: it is of a call of named tensors.
  const NamedTensors& tensors() const { return std::get<NamedTensors>(call_->request().input); }

  // Of its call; null if nobody wants to know.
  CallRecord* record() const { return call_->request().record.get(); }

  // What its call asks to see of attention.
  const std::optional<models::ExplanationWish>& explain() const { return call_->request().explain; }
  void Explain(models::Explanation explanation) { call_->Explain(std::move(explanation)); }

  // So much of its i-th item is done, from 0 to 1. False if nobody wants the answer any more.
  bool Advance(int64_t i, double done) const { return call_->Advance(items_[i], done); }

  // Each share is ended by one of these, once.
  void Answer(ShareAnswer answer, const ForwardPass& pass);
  void FailComputed(absl::Status why);
  void Reject(absl::Status why) override;

 private:
  // Null once it has ended.
  std::shared_ptr<PredictCall> call_;
  const std::vector<size_t> items_;
};

// One share for each bucket that the call's items are in, in the order of their first items; of named
// tensors, which are in one bucket, one. REQUIRES: the call has an item, or named tensors.
std::vector<std::unique_ptr<BatchTask>> ShareOut(std::shared_ptr<PredictCall> call);

}  // namespace saccade::server
