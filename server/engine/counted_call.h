// A call without a forward pass of its own, answered by the steps of an ensemble or by the cache. It is
// admitted, rejected and counted like other calls.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "server/core/tensor_call.h"
#include "server/engine/answer_charge.h"
#include "server/engine/pipeline.h"

namespace saccade::server {

// Not thread-safe. Holds its admission ticket until it is destroyed, but no longer counts as a request in
// flight once End() was called.
class CountedCall {
 public:
  // The objects that `deps` and `metrics` point to, and the call's protocol name, must outlive this object.
  CountedCall(const Pipeline::Deps& deps, ModelMetrics* metrics, const TensorCall& call);

  // Admits the call. Fails with DEADLINE_EXCEEDED or CANCELLED if the call has expired or was cancelled, or
  // with an error of Admission::Admit; errors are counted as shed and carry the shed reason. `model` and
  // `model_bounds` are those of Admission::Admit.
  absl::Status Enter(const TensorCall& call, absl::string_view model, const Inflight& model_bounds);

  // Gives the admission ticket to a call that is computed after all, and counted there instead of by End().
  std::shared_ptr<Admission::Ticket> TakeTicket() {
    return std::make_shared<Admission::Ticket>(std::move(ticket_));
  }

  // The charge of a large answer that is held elsewhere, too; null for a small one. Called before End().
  std::shared_ptr<const AnswerCharge> ForAnswer(int64_t bytes) const;

  // Counts the call. Called once, just before it is answered. `computed` is RequestRecord::computed. `items`
  // and `timings` are those of a successful call.
  void End(absl::StatusCode code, bool computed, int64_t items = 0, const Timings& timings = {});

 private:
  absl::Status Admit(const TensorCall& call, absl::string_view model, const Inflight& model_bounds);

  const Pipeline::Deps deps_;
  ModelMetrics* const metrics_;
  const std::string_view protocol_;
  const absl::Time arrival_;
  const std::shared_ptr<CallRecord> record_;
  Admission::Ticket ticket_;
};

}  // namespace saccade::server
