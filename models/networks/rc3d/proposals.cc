#include "models/networks/rc3d/proposals.h"

#include <ATen/ops/amax.h>

#include <algorithm>
#include <numeric>

#include "models/device/fetching.h"
#include "models/networks/rc3d/suppression.h"
#include "models/networks/rc3d/table.h"

namespace saccade::models {
namespace {

constexpr double kMaxOverlap = 0.7;
// Maximum number of candidates for suppression, whose time grows with the square of it.
constexpr size_t kMaxCandidates = 2000;

// [1, C, T, 1, 1] to [T, C].
at::Tensor ByStep(const Fetching& numbers) {
  return numbers.Wait().to(at::kFloat).squeeze(0).flatten(1).transpose(0, 1).contiguous();
}

// Returns the `max` best, best first; equal scores keep their order.
Scored Best(const Scored& all, size_t max) {
  std::vector<size_t> order(all.segments.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return all.scores[a] > all.scores[b]; });
  order.resize(std::min(order.size(), max));
  Scored best;
  for (const size_t i : order) best.Add(all.segments[i], all.scores[i], all.labels[i]);
  return best;
}

}  // namespace

TemporalProposalHead::TemporalProposalHead(const TensorMap& tensors)
    : hidden_(BiasedConvolution(tensors, kProposalConvolution, {.activation = Activation::kRelu})),
      logits_(BiasedConvolution(tensors, kProposalLogits, {})),
      offsets_(BiasedConvolution(tensors, kProposalOffsets, {})) {}

ProposalNumbers TemporalProposalHead::operator()(const at::Tensor& map) const {
  const at::Tensor steps = hidden_(map).amax({3, 4}, /*keepdim=*/true);
  const Fetching logits(logits_(steps));
  const Fetching offsets(offsets_(steps));
  return {ByStep(logits), ByStep(offsets)};
}

std::vector<Segment> Propose(const ProposalNumbers& numbers, int64_t frames, const Rc3dOptions& options) {
  const float* logit = numbers.logits.const_data_ptr<float>();
  const float* offsets = numbers.offsets.const_data_ptr<float>();
  Scored candidates;
  for (int64_t step = 0; step < numbers.logits.size(0); ++step) {
    for (const int64_t steps_long : options.anchors) {
      const Segment segment =
          Clipped(Moved(Anchor(step, steps_long), offsets, kProposalSegmentWeights), frames);
      // Ranks by logits, as large ones would be equal as probabilities.
      if (segment.length() >= kMinSegmentFrames) candidates.Add(segment, *logit, 0);
      ++logit;
      offsets += 2;
    }
  }
  return Suppressed(Best(candidates, kMaxCandidates), kMaxOverlap, options.proposals).segments;
}

}  // namespace saccade::models
