#include "server/engine/forward.h"

#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <numeric>
#include <optional>
#include <utility>

#include "absl/algorithm/container.h"
#include "models/api/attention_probe.h"
#include "models/device/pinned.h"
#include "models/device/separate_cores.h"
#include "server/engine/pass_failure.h"
#include "server/engine/passes.h"

namespace saccade::server {
namespace {

using Items = std::vector<BytePieces>;

bool IsAligned(const char* data) { return reinterpret_cast<uintptr_t>(data) % alignof(float) == 0; }

// The start of the items if they are contiguous, aligned and of `item_bytes` bytes each; otherwise null.
const char* WholeBatch(const Items& items, size_t item_bytes) {
  const char* begin = nullptr;
  for (size_t i = 0; i < items.size(); ++i) {
    if (items[i].size() != item_bytes || items[i].pieces().size() != 1) return nullptr;
    const char* const at = items[i].pieces()[0].data();
    if (i == 0) begin = at;
    if (at != begin + i * item_bytes) return nullptr;
  }
  return IsAligned(begin) ? begin : nullptr;
}

// `pinned`: the batch is put where GPUs copy from, even if it is contiguous: CUDA would copy it by way of
// such memory too, and the thread would wait for that and for the passes before.
at::Tensor Gather(const Items& items, const std::vector<models::Placement>& placements,
                  const std::vector<int64_t>& shape, bool pinned) {
  const size_t floats = std::accumulate(shape.begin() + 1, shape.end(), size_t{1}, std::multiplies<size_t>());
  const char* const whole = pinned ? nullptr : WholeBatch(items, floats * sizeof(float));
  if (whole != nullptr) {
    // The network only reads its input; from_blob has no const form.
    return at::from_blob(const_cast<char*>(whole), shape, at::kFloat);
  }
  at::Tensor batch = pinned ? models::EmptyPinned(shape, at::kFloat) : at::empty(shape, at::kFloat);
  auto* to = batch.mutable_data_ptr<float>();
  for (size_t i = 0; i < items.size(); ++i) {
    WritePixels(items[i], placements[i], {to + i * floats, floats});
  }
  return batch;
}

// The share of the bucket that is padding.
double PaddingOf(const models::Placement& placement) {
  const auto room = [](models::Size size, int64_t depth) {
    return static_cast<double>(size.height * size.width * depth);
  };
  return 1 - room(placement.scaled, placement.sent_depth) / room(placement.bucket, placement.depth);
}

// The shape of the items as they lie in memory: a clip's frames are consecutive.
std::vector<int64_t> ShapeOf(const models::ImageInput& input, const models::Placement& placement,
                             size_t count) {
  std::vector<int64_t> shape;
  shape.reserve(5);
  shape.push_back(static_cast<int64_t>(count));
  if (input.medium == models::Medium::kClip) shape.push_back(placement.depth);
  shape.push_back(input.channels());
  if (input.medium == models::Medium::kVolume) shape.push_back(placement.depth);
  shape.insert(shape.end(), {placement.bucket.height, placement.bucket.width});
  return shape;
}

// The share that an item belongs to, and its index there.
struct Owner {
  CallShare* share = nullptr;
  int64_t index = 0;
};

// nullopt if no share asks for attention maps. (With a probe, the pass cannot use its recorded CUDA graph.)
std::optional<models::AttentionProbe> ProbeOf(const models::Description& model, const Shares& shares) {
  if (absl::c_none_of(shares, [](const auto& share) { return share->explain().has_value(); })) {
    return std::nullopt;
  }
  std::vector<std::optional<models::ExplanationWish>> wishes;
  for (const auto& share : shares) {
    std::optional<models::ExplanationWish> wish = share->explain();
    if (wish && wish->layer.empty() && !model.attention_layers.empty())
      wish->layer = model.attention_layers.back();
    wishes.insert(wishes.end(), static_cast<size_t>(share->size()), wish);
  }
  return models::AttentionProbe(std::move(wishes));
}

void Explain(models::AttentionProbe& probe, const std::vector<Owner>& owners) {
  for (size_t item = 0; item < owners.size(); ++item) {
    if (auto explanation = probe.TakeOut(item)) owners[item].share->Explain(*std::move(explanation));
  }
}

// Splits the results, which are in the order of all items, by share.
std::vector<ShareAnswer> Divide(const Shares& shares, std::vector<models::TaskResult> results) {
  std::vector<ShareAnswer> answers;
  answers.reserve(shares.size());
  auto next = std::make_move_iterator(results.begin());
  for (const auto& share : shares) {
    answers.emplace_back(std::vector<models::TaskResult>(next, next + share->size()));
    next += share->size();
  }
  return answers;
}

absl::StatusOr<std::vector<ShareAnswer>> RunShares(const models::Model& model, const Shares& shares,
                                                   ModelMetrics* metrics,
                                                   const std::function<void()>& advanced) {
  Items items;
  std::vector<models::Placement> placements;
  std::vector<Owner> owners;
  for (const auto& share : shares) {
    for (int64_t i = 0; i < share->size(); ++i) {
      items.push_back(share->item(i).pixels);
      placements.push_back(share->item(i).placement);
      owners.push_back({share.get(), i});
    }
  }
  std::optional<models::AttentionProbe> probe = ProbeOf(model.description(), shares);
  const models::AttentionProbe::Scope looked_on(probe ? &*probe : nullptr);
  auto results = Forward(model, items, placements, [&](size_t item, double done) {
    advanced();
    return owners.at(item).share->Advance(owners[item].index, done);
  });
  if (!results.ok()) return results.status();
  if (probe) Explain(*probe, owners);
  for (const models::Placement& placement : placements) metrics->RecordPadding(PaddingOf(placement));
  return Divide(shares, *std::move(results));
}

}  // namespace

absl::StatusOr<std::vector<models::TaskResult>> Forward(
    const models::Model& model, const std::vector<BytePieces>& items,
    std::vector<models::Placement> placements, std::function<bool(size_t item, double done)> progress) {
  const size_t count = items.size();
  const models::ImageInput& input = model.description().input;
  try {
    at::Tensor pixels = Gather(items, placements, ShapeOf(input, placements[0], count), model.sends_pixels());
    if (input.medium == models::Medium::kClip) pixels = pixels.transpose(1, 2);
    const models::SeparateCores own;
    auto results = model.Run(
        {.pixels = std::move(pixels), .placements = std::move(placements), .progress = std::move(progress)});
    if (results.size() != count)
      return absl::InternalError("the model did not return one result per picture");
    return results;
  } catch (const std::exception& error) {
    return PassFailure(error);
  }
}

PassEnd ComputeBatch(const models::Model& model, Shares batch, Clock* clock, ModelMetrics* metrics,
                     const std::function<void()>& advanced) {
  return ComputeShares(std::move(batch), clock, metrics,
                       [&](const Shares& shares) { return RunShares(model, shares, metrics, advanced); });
}

}  // namespace saccade::server
