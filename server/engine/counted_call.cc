#include "server/engine/counted_call.h"

#include <utility>

#include "server/batching/batch_task.h"
#include "server/engine/count_shed.h"
#include "server/tracing/call_record.h"

namespace saccade::server {

CountedCall::CountedCall(const Pipeline::Deps& deps, ModelMetrics* metrics, const TensorCall& call)
    : deps_(deps),
      metrics_(metrics),
      protocol_(call.protocol),
      arrival_(call.arrival),
      record_(call.record) {}

absl::Status CountedCall::Enter(const TensorCall& call, absl::string_view model,
                                const Inflight& model_bounds) {
  absl::Status status = Admit(call, model, model_bounds);
  CountShed(*deps_.metrics, call.nested, status);
  return status;
}

absl::Status CountedCall::Admit(const TensorCall& call, absl::string_view model,
                                const Inflight& model_bounds) {
  absl::Status alive =
      CheckAlive({.arrival = call.arrival, .deadline = call.deadline, .cancellation = call.cancellation},
                 deps_.clock->Now());
  if (!alive.ok()) return alive;
  int64_t bytes = 0;
  for (const Tensor& input : call.inputs) bytes += static_cast<int64_t>(input.data.size());
  auto ticket = deps_.admission->Admit({.bytes = bytes,
                                        .charged_bytes = call.charged_bytes,
                                        .client = call.client,
                                        .model = model,
                                        .model_bounds = model_bounds,
                                        .nested = call.nested});
  if (!ticket.ok()) return ticket.status();
  ticket_ = *std::move(ticket);
  return absl::OkStatus();
}

std::shared_ptr<const AnswerCharge> CountedCall::ForAnswer(int64_t bytes) const {
  return ChargeLargeAnswer(ticket_, bytes);
}

void CountedCall::End(absl::StatusCode code, bool computed, int64_t items, const Timings& timings) {
  ticket_.ReturnRequest();
  const absl::Time ended = deps_.clock->Now();
  Timings counted = timings;
  counted.total = ended - arrival_;
  metrics_->RecordRequest({.protocol = protocol_,
                           .code = code,
                           .computed = computed,
                           .pictures = items,
                           .timings = counted,
                           .ended = ended,
                           .sizes = {},
                           .sampled = record_ == nullptr ? SampledSpan{} : record_->sampled_span()});
}

}  // namespace saccade::server
