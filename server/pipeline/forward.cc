#include "server/pipeline/forward.h"

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/util/Exception.h>

#include <cstdint>
#include <cstring>
#include <exception>
#include <iterator>
#include <new>
#include <utility>

#include "server/pipeline/predict_call.h"

namespace saccade::server {
namespace {

using Calls = std::vector<std::unique_ptr<PredictCall>>;

bool IsAligned(const float* data) { return reinterpret_cast<uintptr_t>(data) % alignof(float) == 0; }

at::Tensor Gather(const std::vector<absl::Span<const float>>& parts, const std::vector<int64_t>& shape) {
  if (parts.size() == 1 && IsAligned(parts[0].data())) {
    // The network reads its input only; from_blob has no const form.
    return at::from_blob(const_cast<float*>(parts[0].data()), shape, at::kFloat);
  }
  at::Tensor batch = at::empty(shape, at::kFloat);
  auto* to = reinterpret_cast<char*>(batch.mutable_data_ptr<float>());
  for (const absl::Span<const float> part : parts) {
    std::memcpy(to, part.data(), part.size() * sizeof(float));
    to += part.size() * sizeof(float);
  }
  return batch;
}

int64_t Pictures(const Calls& calls) {
  int64_t pictures = 0;
  for (const auto& call : calls) pictures += call->size();
  return pictures;
}

void AnswerEach(Calls calls, std::vector<models::TaskResult> results, absl::Time started, absl::Time ended) {
  const int64_t pictures = Pictures(calls);
  auto next = std::make_move_iterator(results.begin());
  for (auto& call : calls) {
    std::vector<models::TaskResult> own(next, next + call->size());
    next += call->size();
    call->Answer(std::move(own), pictures, started, ended);
    call.reset();
  }
}

void Compute(const models::Model& model, Calls calls, Clock* clock, ModelMetrics* metrics) {
  std::vector<absl::Span<const float>> parts;
  for (const auto& call : calls) parts.push_back(call->pixels());
  const absl::Time started = clock->Now();
  auto results = Forward(model, parts, Pictures(calls));
  const absl::Time ended = clock->Now();
  if (results.ok()) {
    metrics->RecordBatch(Pictures(calls));
    AnswerEach(std::move(calls), *std::move(results), started, ended);
  } else if (calls.size() == 1) {
    calls[0]->FailComputed(results.status());
  } else {
    for (auto& call : calls) {
      Calls alone;
      alone.push_back(std::move(call));
      Compute(model, std::move(alone), clock, metrics);
    }
  }
}

}  // namespace

void UseThreads(int threads) { at::set_num_threads(threads); }

absl::StatusOr<std::vector<models::TaskResult>> Forward(const models::Model& model,
                                                        const std::vector<absl::Span<const float>>& parts,
                                                        int64_t pictures) {
  const models::ImageInput& input = model.description().input;
  try {
    auto results = model.Run(Gather(parts, {pictures, 3, input.height, input.width}));
    if (static_cast<int64_t>(results.size()) != pictures) {
      return absl::InternalError("the model did not return one result per picture");
    }
    return results;
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError("no memory left for the forward pass; send fewer pictures at once");
  } catch (const c10::Error& error) {
    return absl::InternalError(error.what_without_backtrace());
  } catch (const std::exception& error) {
    return absl::InternalError(error.what());
  }
}

void ComputeBatch(const models::Model& model, std::vector<std::unique_ptr<BatchTask>> batch, Clock* clock,
                  ModelMetrics* metrics) {
  Calls calls;
  for (auto& task : batch) calls.emplace_back(static_cast<PredictCall*>(task.release()));
  if (!calls.empty()) Compute(model, std::move(calls), clock, metrics);
}

}  // namespace saccade::server
