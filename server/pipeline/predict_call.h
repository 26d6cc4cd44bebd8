// A request on its way through the rooms: admitted, decoded, shared out by bucket, computed, answered exactly
// once.
#pragma once

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
#include "server/metrics/metrics.h"
#include "server/pipeline/answer_order.h"
#include "server/pipeline/item.h"

namespace saccade::server {

// Called exactly once, on whichever thread ended the request; must not block.
using PredictDone = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;

// What a share of a call gets of a forward pass: a result for each of its items, or a program's outputs.
using ShareAnswer = std::variant<std::vector<models::TaskResult>, std::vector<Tensor>>;

// A forward pass that items of a call took part in.
struct ForwardPass {
  // Items of all calls in it.
  int64_t batch_size = 0;
  absl::Time started;
  absl::Time ended;
};

// Owned by one stage at a time until ExpectShares, and not thread-safe. Then it belongs to its shares
// (CallShare), which end on any threads; what they see of it does not change any more.
class PredictCall : public std::enable_shared_from_this<PredictCall> {
 public:
  // What serves the call; it must all outlive it, for which `model` may see.
  struct Server {
    int64_t version;
    const models::Description* description;
    ModelMetrics* metrics;
    Metrics* all_metrics;
    Clock* clock;
    // Keeps alive what computes the call, until the call is destroyed.
    std::shared_ptr<const void> model = nullptr;
    // Batcher::Consider of that; none if everything is worth the work.
    std::function<absl::Status(const BatchTask::Traits& traits, absl::Span<const int64_t> buckets)> consider =
        nullptr;
  };

  PredictCall(Request request, PredictDone done, const Server& server);
  // A call that nobody answered is answered with INTERNAL: no client waits for ever on a bug.
  ~PredictCall();
  PredictCall(const PredictCall&) = delete;
  PredictCall& operator=(const PredictCall&) = delete;

  const Request& request() const { return request_; }
  // Of all its items, in no bucket.
  BatchTask::Traits traits() const;

  // Held until the call is destroyed, so that a drained server is one whose answers are out.
  Admission::Ticket& ticket() { return *ticket_; }
  // In its place, one that somebody else holds too.
  void UseTicket(std::shared_ptr<Admission::Ticket> ticket) { ticket_ = std::move(ticket); }

  // Its answer is to leave at this place. Such a call is owned by shared pointers. What it is turned away
  // with, before it was computed, leaves at once.
  void KeepOrder(AnswerOrder::Place place) { place_.emplace(std::move(place)); }

  // Before work is done for an item that belongs in one of `buckets`: not OK if it would be refused after it.
  absl::Status Consider(absl::Span<const int64_t> buckets) const {
    return server_.consider ? server_.consider(traits(), buckets) : absl::OkStatus();
  }

  // In the request's order.
  void AddItem(Item item) { items_.push_back(std::move(item)); }
  // Once per item, in the same order, unless they came as a tensor.
  void AddSent(const SentItem& sent) { sent_.push_back(sent); }
  const std::vector<Item>& items() const { return items_; }
  // Of a request of named tensors, which has no items: calls of one bucket may share a batch.
  void UseBucket(int64_t bucket) { bucket_ = bucket; }
  int64_t bucket() const { return bucket_; }
  // The end of decoding, or of a tensor's checks: from here on the call waits for an instance.
  void MarkPrepared();

  // Turned away before it cost compute; counted as shed (ShedReasonOf) unless the request is wrong in itself.
  // REQUIRES: no shares are expected.
  void Refuse(absl::Status why);

  // The call is answered when so many shares, which must be at least one, have ended: with the results of
  // all, or with the first failure. From the first failure on, those that still wait are cancelled. Called
  // once.
  void ExpectShares(int count);

  // Thread-safe. Passes on that so much of an item is done. False if the call was cancelled or is late.
  bool Advance(size_t item, double done) const;

  // Thread-safe. Of its one item, before its share ends.
  void Explain(models::Explanation explanation) ABSL_LOCKS_EXCLUDED(mutex_);

  // Thread-safe; each share ends once, by one of these. `items` are the indices of what results are for.
  // One failed picture fails its whole request, and no other.
  void EndShare(const std::vector<size_t>& items, ShareAnswer answer, const ForwardPass& pass)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // `computed`: the forward pass was tried. Otherwise as Refuse.
  void FailShare(absl::Status why, bool computed) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct ShareFailure {
    absl::Status why;
    bool computed = false;
  };

  // The client's own bytes cost no time before they wait.
  bool was_worked_on() const { return !items_.empty() && items_[0].owned != nullptr; }
  bool EndOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AnswerShares() ABSL_LOCKS_EXCLUDED(mutex_);
  void Answer(Response response, const ForwardPass& passes);
  void Finish(absl::StatusOr<Response> outcome, bool computed);
  void Leave(absl::StatusOr<Response> outcome, bool computed);

  const Request request_;
  const Server server_;
  PredictDone done_;
  std::shared_ptr<Admission::Ticket> ticket_ = std::make_shared<Admission::Ticket>();
  std::optional<AnswerOrder::Place> place_;
  std::vector<Item> items_;
  std::vector<SentItem> sent_;
  int64_t bucket_ = 0;
  absl::Time prepared_ = absl::InfinitePast();
  bool finished_ = false;
  // Of the answer, before it was encoded.
  int64_t answer_bytes_ = 0;

  absl::Mutex mutex_;
  int outstanding_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<models::TaskResult> results_ ABSL_GUARDED_BY(mutex_);
  std::vector<Tensor> outputs_ ABSL_GUARDED_BY(mutex_);
  std::optional<models::Explanation> explanation_ ABSL_GUARDED_BY(mutex_);
  // From the start of the first to the end of the last; the largest batch.
  ForwardPass passes_ ABSL_GUARDED_BY(mutex_) = {0, absl::InfiniteFuture(), absl::InfinitePast()};
  std::optional<ShareFailure> failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
