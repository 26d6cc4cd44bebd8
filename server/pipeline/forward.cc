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

#include "server/pipeline/call_share.h"

namespace saccade::server {
namespace {

using Shares = std::vector<std::unique_ptr<CallShare>>;
using Items = std::vector<absl::Span<const float>>;

bool IsAligned(const float* data) { return reinterpret_cast<uintptr_t>(data) % alignof(float) == 0; }

bool LieOneAfterTheOther(const Items& items) {
  for (size_t i = 1; i < items.size(); ++i) {
    if (items[i].data() != items[i - 1].data() + items[i - 1].size()) return false;
  }
  return true;
}

at::Tensor Gather(const Items& items, const std::vector<int64_t>& shape) {
  if (IsAligned(items[0].data()) && LieOneAfterTheOther(items)) {
    // The network reads its input only; from_blob has no const form.
    return at::from_blob(const_cast<float*>(items[0].data()), shape, at::kFloat);
  }
  at::Tensor batch = at::empty(shape, at::kFloat);
  auto* to = reinterpret_cast<char*>(batch.mutable_data_ptr<float>());
  for (const absl::Span<const float> item : items) {
    std::memcpy(to, item.data(), item.size() * sizeof(float));
    to += item.size() * sizeof(float);
  }
  return batch;
}

// How much of its bucket is not picture.
double PaddingOf(const models::Placement& placement) {
  const auto area = [](models::Size size) { return static_cast<double>(size.height * size.width); };
  return 1 - area(placement.scaled) / area(placement.bucket);
}

void AnswerEach(Shares shares, std::vector<models::TaskResult> results, const ForwardPass& pass) {
  auto next = std::make_move_iterator(results.begin());
  for (auto& share : shares) {
    std::vector<models::TaskResult> own(next, next + share->size());
    next += share->size();
    share->Answer(std::move(own), pass);
    share.reset();
  }
}

void Compute(const models::Model& model, Shares shares, Clock* clock, ModelMetrics* metrics) {
  Items items;
  std::vector<models::Placement> placements;
  for (const auto& share : shares) {
    for (int64_t i = 0; i < share->size(); ++i) {
      items.push_back(share->item(i).pixels);
      placements.push_back(share->item(i).placement);
    }
  }
  const absl::Time started = clock->Now();
  auto results = Forward(model, items, placements);
  const absl::Time ended = clock->Now();
  if (results.ok()) {
    const auto size = static_cast<int64_t>(items.size());
    metrics->RecordBatch(size);
    for (const models::Placement& placement : placements) metrics->RecordPadding(PaddingOf(placement));
    AnswerEach(std::move(shares), *std::move(results), {size, started, ended});
  } else if (shares.size() == 1) {
    shares[0]->FailComputed(results.status());
  } else {
    for (auto& share : shares) {
      Shares alone;
      alone.push_back(std::move(share));
      Compute(model, std::move(alone), clock, metrics);
    }
  }
}

}  // namespace

void UseThreads(int threads) { at::set_num_threads(threads); }

absl::StatusOr<std::vector<models::TaskResult>> Forward(const models::Model& model,
                                                        const std::vector<absl::Span<const float>>& items,
                                                        std::vector<models::Placement> placements) {
  const size_t count = items.size();
  const models::Size bucket = placements[0].bucket;
  const int64_t channels = model.description().input.channels();
  try {
    const std::vector<int64_t> shape = {static_cast<int64_t>(count), channels, bucket.height, bucket.width};
    auto results = model.Run({.pixels = Gather(items, shape), .placements = std::move(placements)});
    if (results.size() != count)
      return absl::InternalError("the model did not return one result per picture");
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
  Shares shares;
  for (auto& task : batch) shares.emplace_back(static_cast<CallShare*>(task.release()));
  if (!shares.empty()) Compute(model, std::move(shares), clock, metrics);
}

}  // namespace saccade::server
