#include "server/pipeline/predict_call.h"

#include <optional>
#include <utility>

namespace saccade::server {
namespace {

BatchTask::Traits TraitsOf(const Request& request) {
  return {.size = request.size(),
          .priority = request.priority,
          .arrival = request.arrival,
          .deadline = request.deadline,
          .cancellation = request.cancellation};
}

std::optional<ShedReason> ShedReasonOf(absl::StatusCode code, ShedReason exhausted) {
  switch (code) {
    case absl::StatusCode::kResourceExhausted:
      return exhausted;
    case absl::StatusCode::kCancelled:
      return ShedReason::kCancelled;
    case absl::StatusCode::kDeadlineExceeded:
      return ShedReason::kDeadline;
    case absl::StatusCode::kUnavailable:
      return ShedReason::kDraining;
    default:
      return std::nullopt;
  }
}

}  // namespace

PredictCall::PredictCall(Request request, PredictDone done, const Server& server)
    : BatchTask(TraitsOf(request)), request_(std::move(request)), server_(server), done_(std::move(done)) {}

PredictCall::~PredictCall() {
  if (!finished_)
    Reject(absl::InternalError("the request was dropped without an answer; this is a bug in saccaded"));
}

absl::Span<float> PredictCall::AllocatePixels(int64_t floats_per_picture) {
  decoded_.resize(size() * floats_per_picture);
  return absl::MakeSpan(decoded_);
}

absl::Span<const float> PredictCall::pixels() const {
  if (const auto* tensor = std::get_if<TensorInput>(&request_.input)) {
    return {reinterpret_cast<const float*>(tensor->data.bytes.data()),
            tensor->data.bytes.size() / sizeof(float)};
  }
  return decoded_;
}

void PredictCall::Answer(std::vector<models::TaskResult> results, int64_t batch_size, absl::Time started,
                         absl::Time ended) {
  for (const models::TaskResult& result : results) {
    if (const auto* failure = std::get_if<models::Failure>(&result)) {
      FailComputed(absl::InternalError(failure->message));
      return;
    }
  }
  const absl::Time now = server_.clock->Now();
  Response response;
  response.model = request_.model;
  response.version = server_.version;
  response.description = server_.description;
  response.results = std::move(results);
  response.pictures = sizes_;
  response.batch_size = batch_size;
  const bool decoded = !std::holds_alternative<TensorInput>(request_.input);
  response.timings = {.decode = decoded ? prepared_ - arrival() : absl::ZeroDuration(),
                      .queue = started - prepared_,
                      .infer = ended - started,
                      .total = now - arrival()};
  const Timings timings = response.timings;
  Finish(std::move(response), /*computed=*/true, timings, now - ended);
}

void PredictCall::FailComputed(absl::Status why) {
  Finish(std::move(why), /*computed=*/true, {.total = server_.clock->Now() - arrival()},
         absl::ZeroDuration());
}

void PredictCall::Refuse(absl::Status why, ShedReason exhausted) {
  if (const auto reason = ShedReasonOf(why.code(), exhausted)) server_.all_metrics->RecordShed(*reason);
  Finish(std::move(why), /*computed=*/false, {.total = server_.clock->Now() - arrival()},
         absl::ZeroDuration());
}

void PredictCall::Finish(absl::StatusOr<Response> outcome, bool computed, const Timings& timings,
                         absl::Duration encode) {
  finished_ = true;
  // Counted before it is answered: whoever has the answer finds it in the metrics.
  server_.metrics->RecordRequest({.protocol = request_.protocol,
                                  .code = outcome.status().code(),
                                  .computed = computed,
                                  .pictures = size(),
                                  .timings = timings,
                                  .encode = encode,
                                  .sizes = sizes_});
  std::move(done_)(std::move(outcome));
}

}  // namespace saccade::server
