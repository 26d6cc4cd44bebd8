// A request on its way through the rooms: admitted, decoded, queued, computed, answered exactly once.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "server/admission/admission.h"
#include "server/batching/batch_task.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/metrics/metrics.h"

namespace saccade::server {

// Called exactly once, on whichever thread ended the request; must not block.
using PredictDone = absl::AnyInvocable<void(absl::StatusOr<Response>) &&>;

// Owned by one stage at a time, so not thread-safe.
class PredictCall final : public BatchTask {
 public:
  // What serves the call; it must all outlive it.
  struct Server {
    int64_t version;
    const models::Description* description;
    ModelMetrics* metrics;
    Metrics* all_metrics;
    Clock* clock;
  };

  PredictCall(Request request, PredictDone done, const Server& server);
  // A call that nobody answered is answered with INTERNAL: no client waits for ever on a bug.
  ~PredictCall() override;

  const Request& request() const { return request_; }

  // Held until the call is destroyed, so that a drained server is one whose answers are out.
  Admission::Ticket& ticket() { return ticket_; }

  // Room for the decoded pictures, `floats_per_picture` each; called once, before decoding.
  absl::Span<float> AllocatePixels(int64_t floats_per_picture);
  void AddDecoded(PictureSize size) { sizes_.push_back(size); }
  // The end of decoding, or of a tensor's checks: from here on the call waits for an instance.
  void MarkPrepared() { prepared_ = server_.clock->Now(); }

  // Normalised fp32, size() pictures one after the other: decoded, or the client's own bytes, uncopied.
  absl::Span<const float> pixels() const;

  // What a forward pass from `started` to `ended` over `batch_size` pictures made of it. One failed picture
  // fails its whole request, and no other.
  void Answer(std::vector<models::TaskResult> results, int64_t batch_size, absl::Time started,
              absl::Time ended);
  // The forward pass was tried and failed.
  void FailComputed(absl::Status why);
  // Turned away before it cost compute; counted as shed unless the request is wrong in itself. `exhausted`
  // tells which bound a RESOURCE_EXHAUSTED is about.
  void Refuse(absl::Status why, ShedReason exhausted);
  // As Refuse; the batcher knows of one bound, its queue's.
  void Reject(absl::Status why) override { Refuse(std::move(why), ShedReason::kQueueFull); }

 private:
  void Finish(absl::StatusOr<Response> outcome, bool computed, const Timings& timings, absl::Duration encode);

  const Request request_;
  const Server server_;
  PredictDone done_;
  Admission::Ticket ticket_;
  std::vector<float> decoded_;
  std::vector<PictureSize> sizes_;
  absl::Time prepared_ = absl::InfinitePast();
  bool finished_ = false;
};

}  // namespace saccade::server
