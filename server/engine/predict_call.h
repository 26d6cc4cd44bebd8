// A request on its way through the server: admitted, decoded, split by bucket, computed, and answered exactly
// once.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "server/admission/admission.h"
#include "server/batching/batch_task.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/engine/answer_order.h"
#include "server/engine/item.h"
#include "server/engine/item_sink.h"
#include "server/engine/ready_model.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

// Called exactly once, on the thread that ended the request; must not block.
using PredictDone = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;

// A share's part of a forward pass: a result for each of its items, or a program's outputs.
using ShareAnswer = std::variant<std::vector<models::TaskResult>, std::vector<Tensor>>;

class AnswerCharge;
class DecodePool;
class PassCopies;
struct ShadowCopies;

// A forward pass that computed items of a call.
struct ForwardPass {
  // Items of all calls in the batch.
  int64_t batch_size = 0;
  absl::Time started;
  absl::Time ended;
  // Timings::core_wait.
  absl::Duration core_wait = absl::ZeroDuration();
  // Takes copies of the pass's requests as they are answered. Null if the pass is not copied.
  PassCopies* copies = nullptr;
};

// Not thread-safe, and owned by one stage at a time, until ExpectShares(). Afterwards it is owned by its
// shares (CallShare), which end on any threads; what they read of it no longer changes.
class PredictCall final : public ItemSink, public std::enable_shared_from_this<PredictCall> {
 public:
  // The pointers must outlive the call.
  struct Deps {
    // Computes the call, and is held until the call is destroyed.
    std::shared_ptr<const ReadyModel> model;
    Metrics* metrics;
    Clock* clock;
    // Encodes answers that take long, so that the instance goes on meanwhile. Null: the thread of the pass
    // encodes all.
    DecodePool* encode_pool = nullptr;
  };

  PredictCall(Request request, PredictDone done, Deps deps);
  // Answers with INTERNAL if the call was not answered, so that a bug does not leave the client waiting.
  ~PredictCall();
  PredictCall(const PredictCall&) = delete;
  PredictCall& operator=(const PredictCall&) = delete;

  const Request& request() const override { return request_; }
  BatchTask::Traits traits() const override;

  // Held until the call is destroyed, so that draining waits until all answers are out. Used under the mutex
  // while shares end.
  Admission::Ticket& ticket() { return *ticket_; }
  // Replaces the ticket with a shared one.
  void UseTicket(std::shared_ptr<Admission::Ticket> ticket) { ticket_ = std::move(ticket); }

  // Makes the answer leave at this turn in the model's order. REQUIRES: the call is owned by shared
  // pointers. Errors from before it was computed leave at once.
  void KeepOrder(AnswerOrder::Turn turn) { turn_.emplace(std::move(turn)); }

  absl::Status Consider(absl::Span<const int64_t> buckets) const override {
    return deps_.model->Consider(traits(), buckets);
  }

  int64_t max_items() const override { return deps_.model->MaxItemsOfRequest(request_.priority); }
  int64_t item_count() const override { return static_cast<int64_t>(items_.size()); }
  absl::Status AddDecodedBytes(int64_t bytes) override;
  void AddItem(Item item) override { items_.push_back(std::move(item)); }
  void AddSent(const SentItem& sent) override { sent_.push_back(sent); }
  const std::vector<Item>& items() const { return items_; }
  // For a request with named tensors, which has no items: calls with equal buckets may share a batch.
  void UseBucket(int64_t bucket) { bucket_ = bucket; }
  int64_t bucket() const { return bucket_; }
  const std::shared_ptr<const ReadyModel>& model() const { return deps_.model; }
  // Marks the end of decoding or of a tensor's checks. From here on the call waits for an instance.
  void MarkPrepared();

  // Ends the call with an error before it was computed. Counted as shed (ShedReasonOf) unless the request
  // itself is invalid. REQUIRES: ExpectShares() was not called.
  void Refuse(absl::Status why);

  // Sets the number of shares, at least one. The call is answered when all have ended: with all results, or
  // with the first failure. The first failure cancels the shares that are still queued. Called once.
  void ExpectShares(int count);

  // Thread-safe. Reports the progress of an item, from 0 to 1. Returns false if the call was cancelled or is
  // late.
  bool Advance(size_t item, double done) const;

  // Thread-safe. Sets the explanation of the call's only item. Called before its share ends.
  void Explain(models::Explanation explanation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Thread-safe. Counts the shares that wait for a forward pass, and the call in `*requests` while any does.
  void ShareWaits(std::atomic<int64_t>* requests) {
    if (waiting_shares_++ > 0) return;
    ++*requests;
    deps_.metrics->AddWaiting(1);
  }
  void ShareWaitsNoLonger(std::atomic<int64_t>* requests) {
    if (--waiting_shares_ > 0) return;
    --*requests;
    deps_.metrics->AddWaiting(-1);
  }

  // Thread-safe. Each share is ended once, by one of these two. `items` are the indices of the items in
  // `answer`. One failed picture fails its whole request, and no other.
  void EndShare(const std::vector<size_t>& items, ShareAnswer answer, const ForwardPass& pass)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `computed`: the forward pass failed. If false, the share was not computed or there is no room for its
  // results, and the call is ended like Refuse().
  void FailShare(absl::Status why, bool computed) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct ShareFailure {
    absl::Status why;
    bool computed = false;
  };

  // True if the server decoded or copied the input.
  bool was_worked_on() const { return !items_.empty() && items_[0].owned != nullptr; }
  bool EndOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The error for an item without a result: INVALID_ARGUMENT if the item itself is wrong, otherwise INTERNAL.
  absl::Status ErrorOf(const models::Failure& failure, size_t item) const;
  // Charges results of a share that wait for those of the other shares.
  absl::Status ChargeWaiting(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // `copies` is that of the last share's pass; null if that failed.
  void AnswerShares(PassCopies* copies) ABSL_LOCKS_EXCLUDED(mutex_);
  // Before the answer is encoded, which may move from the response.
  void WatchDrift(const Response& response) const;
  void Answer(Response response, const ForwardPass& passes);
  // Response::take_memory: charges what is more than the inputs were charged for.
  std::function<absl::Status(int64_t bytes)> ChargeBeyondInputs();
  // Whether encoding takes far longer than a hand-off to another thread.
  bool EncodesLong(const Response& response) const;
  // `charge` is for the results while they wait; it may be null.
  void Encode(Response response, absl::Time pass_ended, ShadowCopies copies,
              std::shared_ptr<const AnswerCharge> charge);
  void Finish(absl::StatusOr<Response> outcome, bool computed);
  void Leave(absl::StatusOr<Response> outcome, bool computed);

  const Request request_;
  const Deps deps_;
  PredictDone done_;
  std::shared_ptr<Admission::Ticket> ticket_ = std::make_shared<Admission::Ticket>();
  std::optional<AnswerOrder::Turn> turn_;
  std::vector<Item> items_;
  std::vector<SentItem> sent_;
  // Charged for the inputs, for what they were made from, and for maps of the answer. The charge is kept
  // until the call ends.
  int64_t input_bytes_ = 0;
  int64_t bucket_ = 0;
  absl::Time prepared_ = absl::InfinitePast();
  bool finished_ = false;
  // Size of the answer before it was encoded.
  int64_t answer_bytes_ = 0;
  std::atomic<int> waiting_shares_{0};

  absl::Mutex mutex_;
  int outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<models::TaskResult> results_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> outputs_ ABSL_GUARDED_BY(mutex_);
  std::optional<models::Explanation> explanation_ ABSL_GUARDED_BY(mutex_);
  // The call's passes combined: the start of the first, the end of the last, and the largest batch.
  ForwardPass passes_ ABSL_GUARDED_BY(mutex_) = {0, absl::InfiniteFuture(), absl::InfinitePast()};
  int number_of_passes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<ShareFailure> failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
