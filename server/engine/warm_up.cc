#include "server/engine/warm_up.h"

#include <cstring>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "server/engine/forward.h"
#include "server/engine/item.h"
#include "server/engine/tensor_items.h"
#include "server/engine/warm_up_item.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

int64_t FloatsOf(const models::ImageInput& input, const models::Placement& placement) {
  return input.channels() * placement.depth * placement.bucket.height * placement.bucket.width;
}

absl::Status WarmUpBatch(const models::Model& model, const Engine::WarmUpOptions& options,
                         const models::Placement& placement, int64_t size) {
  const models::Size bucket = placement.bucket;
  const std::function<absl::Status()> pass = WarmUpPass(model, placement, size);
  if (pass == nullptr) return absl::OkStatus();
  for (int passes = 1;; ++passes) {
    const absl::Time start = options.clock->Now();
    if (const absl::Status ran = pass(); !ran.ok()) {
      return absl::Status(ran.code(),
                          absl::StrCat("warming up with a batch of ", size, " of ", bucket.height, " x ",
                                       bucket.width, " (height x width): ", ran.message()));
    }
    const absl::Duration took = options.clock->Now() - start;
    if (passes == 1 && took < kLongWarmUpPass) continue;
    options.learn(BucketId(placement), size, took);
    return absl::OkStatus();
  }
}

// The sizes between one and the maximum, the most useful first.
std::vector<int64_t> SizesBetween(const BatcherOptions& batching) {
  std::vector<int64_t> sizes;
  std::set<int64_t> seen;
  const auto add = [&](int64_t size) {
    if (size > 1 && size < batching.max_batch_size && seen.insert(size).second) sizes.push_back(size);
  };
  for (const int64_t size : batching.preferred_batch_sizes) add(size);
  for (int64_t size = 2; size < batching.max_batch_size; size *= 2) add(size);
  for (int64_t size = 2; size < batching.max_batch_size; ++size) add(size);
  return sizes;
}

absl::Status Compute(const models::Model& model, const Warmup& warmup) {
  const models::ImageInput& taken = model.description().input;
  if (warmup.inputs.size() != 1 || warmup.inputs[0].name != "image" ||
      warmup.inputs[0].type != DataType::kFp32) {
    return absl::InvalidArgumentError("expected one input, 'image', of TYPE_FP32");
  }
  const WarmupInput& input = warmup.inputs[0];
  TensorInput tensor{.shape = {warmup.batch_size}, .data = {}};
  tensor.shape.insert(tensor.shape.end(), input.dims.begin(), input.dims.end());
  // Checked before anything is allocated.
  if (absl::Status fits = CheckTensor(tensor, taken); !fits.ok()) return fits;
  int64_t floats = 1;
  for (const int64_t dim : input.dims) floats *= dim;
  const auto bytes = MakeWarmUpItem(input, floats * static_cast<int64_t>(sizeof(float)));
  if (!bytes.ok()) return bytes.status();
  std::vector<float> item(floats);
  std::memcpy(item.data(), bytes->data(), bytes->size());
  const auto count = static_cast<size_t>(warmup.batch_size);
  for (int i = 0; i < warmup.count; ++i) {
    auto results =
        Forward(model, {count, absl::MakeConstSpan(item)}, {count, PlaceTensor(taken, tensor.shape)});
    if (!results.ok()) return results.status();
  }
  return absl::OkStatus();
}

}  // namespace

std::function<absl::Status()> WarmUpPass(const models::Model& model, const models::Placement& placement,
                                         int64_t size) {
  const int64_t floats = FloatsOf(model.description().input, placement);
  if (size > 1 && size * floats * static_cast<int64_t>(sizeof(float)) > kMaxWarmUpBytes) return nullptr;
  const auto grey = std::make_shared<std::vector<float>>(floats, 0.0F);
  return [&model, grey, placement, count = static_cast<size_t>(size)] {
    return Forward(model, {count, absl::MakeConstSpan(*grey)}, {count, placement}).status();
  };
}

absl::Status WarmUpNetwork(const models::Model& model, const ModelSettings& settings,
                           const Engine::WarmUpOptions& options) {
  const models::ImageInput& input = model.description().input;
  for (const Warmup& warmup : settings.warmups) {
    if (absl::Status warm = Compute(model, warmup); !warm.ok())
      return absl::Status(warm.code(), absl::StrCat("model_warmup '", warmup.name, "': ", warm.message()));
  }
  const std::vector<models::Placement> placements = models::PlacementsToWarm(input);
  const auto batch = [&](const models::Placement& placement, int64_t size) {
    return WarmUpBatch(model, options, placement, size);
  };
  const absl::Time start = options.clock->Now();
  const int64_t max = settings.batching.max_batch_size;
  const std::vector<int64_t> between = SizesBetween(settings.batching);
  const auto all = static_cast<int64_t>(placements.size() * (between.size() + (max > 1 ? 2 : 1)));
  size_t warmed = 0;
  int64_t computed = 0;
  const auto tell = [&](int64_t more) {
    computed += more;
    if (options.advanced) options.advanced(computed, all);
  };
  tell(0);
  for (const models::Placement& placement : placements) {
    absl::Status warm = batch(placement, 1);
    if (warm.ok() && max > 1) warm = batch(placement, max);
    if (!warm.ok()) return warm;
    Log(LogLevel::kInfo, "warmed up",
        {{"model", settings.name},
         {"progress", absl::StrCat(++warmed, " of ", placements.size(), " buckets")},
         {"took", options.clock->Now() - start}});
    tell(max > 1 ? 2 : 1);
  }
  const absl::Time end = options.clock->Now() + options.max_time;
  for (const int64_t size : between) {
    for (const models::Placement& placement : placements) {
      if (options.clock->Now() >= end) return absl::OkStatus();
      if (absl::Status warm = batch(placement, size); !warm.ok()) return warm;
      tell(1);
    }
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
