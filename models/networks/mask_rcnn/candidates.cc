#include "models/networks/mask_rcnn/candidates.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/topk.h>

#include <algorithm>
#include <limits>

#include "models/device/fetching.h"
#include "models/device/transfer.h"
#include "models/networks/mask_rcnn/largest.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

// Returns float32 [B, H, W, kProposalOutputs].
at::Tensor ByPosition(const at::Tensor& numbers) { return numbers.permute({0, 2, 3, 1}).contiguous(); }

Candidates ChooseOnHost(const at::Tensor& numbers, Size extent, int64_t max_count, bool exact) {
  const Size grid{numbers.size(0), numbers.size(1)};
  const Size usable = exact ? extent : grid;
  const at::Tensor logits = numbers.narrow(0, 0, usable.height)
                                .narrow(1, 0, usable.width)
                                .narrow(2, 0, kAspectRatios)
                                .reshape({-1});
  // Breaks ties with topk, as torchvision does: padding is constant, and so are its logits.
  auto [best, indices] = at::topk(logits, std::min(max_count, logits.numel()));
  Candidates candidates{best, at::empty_like(indices), at::empty({best.numel(), 4}, at::kFloat), grid};
  const auto* chosen = indices.const_data_ptr<int64_t>();
  auto* anchors = candidates.anchors.mutable_data_ptr<int64_t>();
  auto* deltas = candidates.deltas.mutable_data_ptr<float>();
  for (int64_t i = 0; i < best.numel(); ++i) {
    const int64_t row = chosen[i] / kAspectRatios / usable.width;
    const int64_t column = chosen[i] / kAspectRatios % usable.width;
    const int64_t ratio = chosen[i] % kAspectRatios;
    const int64_t position = row * grid.width + column;
    anchors[i] = position * kAspectRatios + ratio;
    std::copy_n(numbers.const_data_ptr<float>() + position * kProposalOutputs + kAspectRatios + 4 * ratio, 4,
                deltas + 4 * i);
  }
  return candidates;
}

std::vector<PictureCandidates> AllOnHost(const std::vector<FeatureMap>& levels, int64_t max_count,
                                         bool exact) {
  std::vector<at::Tensor> numbers;
  for (const FeatureMap& level : levels) numbers.push_back(ByPosition(Fetched(level.values)));
  std::vector<PictureCandidates> pictures(static_cast<size_t>(numbers.front().size(0)));
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto picture = static_cast<int64_t>(i);
    pictures[i].finite = std::all_of(numbers.begin(), numbers.end(),
                                     [&](const at::Tensor& level) { return AllFinite(level[picture]); });
    if (!pictures[i].finite) continue;
    for (size_t level = 0; level < levels.size(); ++level) {
      pictures[i].levels.push_back(
          ChooseOnHost(numbers[level][picture], levels[level].extents[picture], max_count, exact));
    }
  }
  return pictures;
}

std::vector<PictureCandidates> AllOnDevice(const std::vector<FeatureMap>& levels, int64_t max_count,
                                           bool exact) {
  std::vector<at::Tensor> numbers, anchors, finite;
  std::vector<int64_t> counts;
  for (const FeatureMap& level : levels) {
    const LevelCandidates chosen = ChooseOnDevice(level, max_count, exact);
    numbers.push_back(chosen.numbers);
    anchors.push_back(chosen.anchors);
    finite.push_back(chosen.finite);
    counts.push_back(chosen.anchors.size(1));
  }
  const Fetching numbers_on_way(at::cat(numbers, 1));
  const Fetching anchors_on_way(at::cat(anchors, 1));
  const Fetching finite_on_way(at::stack(finite).all(0));
  const at::Tensor all_numbers = numbers_on_way.Wait();
  const at::Tensor all_anchors = anchors_on_way.Wait();
  const at::Tensor all_finite = finite_on_way.Wait();
  std::vector<PictureCandidates> pictures(static_cast<size_t>(all_anchors.size(0)));
  for (size_t i = 0; i < pictures.size(); ++i) {
    const auto picture = static_cast<int64_t>(i);
    pictures[i].finite = all_finite.const_data_ptr<bool>()[picture];
    int64_t first = 0;
    for (size_t level = 0; level < levels.size(); ++level) {
      const at::Tensor& map = levels[level].values;
      int64_t count = counts[level];
      if (exact) {
        const Size extent = levels[level].extents[picture];
        count = std::min(count, extent.height * extent.width * kAspectRatios);
      }
      const at::Tensor own = all_numbers[picture].narrow(0, first, count);
      pictures[i].levels.push_back({own.select(1, 0).contiguous(),
                                    all_anchors[picture].narrow(0, first, count),
                                    own.narrow(1, 1, 4).contiguous(), Size{map.size(2), map.size(3)}});
      first += counts[level];
    }
  }
  return pictures;
}

}  // namespace

LevelCandidates ChooseOnDevice(const FeatureMap& level, int64_t max_count, bool exact) {
  const at::Tensor numbers = ByPosition(level.values.to(at::kFloat));
  const int64_t batch = numbers.size(0);
  at::Tensor logits = numbers.narrow(3, 0, kAspectRatios);
  int64_t count = logits.numel() / batch;
  if (exact) {
    // Infinite logits are chosen last, and dropped later.
    at::Tensor map = logits.permute({0, 3, 1, 2}).clone();
    level.extents.FillBeyond(map, -std::numeric_limits<float>::infinity());
    logits = map.permute({0, 2, 3, 1});
  }
  logits = logits.reshape({batch, count});
  count = std::min(max_count, count);
  const at::Tensor anchors = FirstOfLargest(logits, count);
  const at::Tensor deltas = numbers.narrow(3, kAspectRatios, kProposalOutputs - kAspectRatios)
                                .reshape({batch, -1, 4})
                                .gather(1, anchors.unsqueeze(2).expand({batch, count, 4}));
  return {at::cat({logits.gather(1, anchors).unsqueeze(2), deltas}, 2), anchors,
          at::isfinite(numbers).flatten(1).all(1)};
}

std::vector<PictureCandidates> ChooseCandidates(const std::vector<FeatureMap>& levels, int64_t max_count,
                                                bool exact, bool on_device) {
  return on_device ? AllOnDevice(levels, max_count, exact) : AllOnHost(levels, max_count, exact);
}

}  // namespace saccade::models
