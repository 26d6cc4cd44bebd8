#include "models/networks/mask_rcnn/mask_rcnn.h"

#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <utility>

#include "models/api/text.h"
#include "models/device/recorded.h"
#include "models/networks/mask_rcnn/box_head.h"
#include "models/networks/mask_rcnn/candidates.h"
#include "models/networks/mask_rcnn/checkpoint.h"
#include "models/networks/mask_rcnn/describe.h"
#include "models/networks/mask_rcnn/mask_head.h"
#include "models/networks/mask_rcnn/proposals.h"
#include "models/networks/mask_rcnn/pyramid.h"
#include "models/networks/mask_rcnn/regions.h"
#include "models/networks/mask_rcnn/tensors.h"
#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

// The convolutions up to the RPN run over the whole batch. The rest runs picture by picture, because its
// exact results would depend on the number of regions in the other pictures.
class MaskRcnn : public Model {
 public:
  MaskRcnn(Description description, const MaskRcnnTable& table, TensorMap tensors)
      : description_(std::move(description)),
        options_(table.options),
        on_device_(tensors.target.on_gpu() || tensors.target.replay_on_cpu),
        box_head_(table, Taken(tensors, "roi_heads.box_")),
        pyramid_(table, Taken(tensors, "backbone.")),
        proposal_head_(Taken(tensors, "rpn.")),
        mask_head_(Taken(tensors, "roi_heads.mask_")),
        maps_(tensors.target, /*record=*/true,
              [this](const FeatureMap& pictures) { return Maps(pictures); }) {}

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    const c10::InferenceMode inference;
    CheckBatch(description_, batch);
    std::vector<FeatureMap> levels = maps_(batch.pixels, Extents::Of(batch.placements));
    const std::vector<FeatureMap> numbers(levels.begin() + static_cast<int64_t>(levels.size() / 2),
                                          levels.end());
    levels.resize(numbers.size());
    // Looked at while a GPU computes the maps.
    std::vector<bool> finite_inputs;
    for (int64_t i = 0; i < batch.pixels.size(0); ++i) finite_inputs.push_back(AllFinite(batch.pixels[i]));
    const std::vector<PictureCandidates> candidates =
        ChooseCandidates(numbers, options_.proposals, options_.exact, on_device_);

    std::vector<TaskResult> results;
    for (size_t i = 0; i < candidates.size(); ++i) {
      results.push_back(finite_inputs[i] ? Finish(levels, candidates[i], i, batch.placements[i])
                                         : NotFiniteInput());
    }
    return results;
  }

 private:
  // Returns the pyramid's levels, followed by the proposal head's output for each level.
  std::vector<FeatureMap> Maps(const FeatureMap& pictures) const {
    std::vector<FeatureMap> maps = pyramid_(pictures);
    const size_t levels = maps.size();
    for (size_t level = 0; level < levels; ++level)
      maps.push_back({proposal_head_(maps[level].values), maps[level].extents});
    return maps;
  }

  TaskResult Finish(const std::vector<FeatureMap>& levels, const PictureCandidates& candidates,
                    size_t picture, const Placement& placement) const {
    if (!candidates.finite) return NotFinite("a proposal");
    const at::Tensor regions = Propose(candidates.levels, placement, options_);
    if (regions.size(0) == 0) return Answer({}, {}, placement);

    const RegionFeatures features = FeaturesOf(levels, static_cast<int64_t>(picture), options_.exact);
    const BoxNumbers boxes = box_head_(Pool(features, regions, kBoxSide));
    if (!AllFinite(boxes.scores) || !AllFinite(boxes.deltas)) return NotFinite("a score or a box");
    const Found found = Detect(boxes, regions, placement.scaled, options_);
    if (found.boxes.empty()) return Answer({}, {}, placement);

    const at::Tensor logits = mask_head_(Pool(features, AsTensor(found.boxes), kMaskSide), found.labels);
    if (!AllFinite(logits)) return NotFinite("a mask");
    return Answer(found, logits.sigmoid(), placement);
  }

  TaskResult NotFinite(const std::string& output) const {
    return NotFiniteOutput(description_.architecture, output);
  }

  static Detections Answer(const Found& found, const at::Tensor& masks, const Placement& placement) {
    Detections answer{.items = {},
                      .mask_side = 2 * kMaskSide,
                      .height = placement.sent.height,
                      .width = placement.sent.width};
    for (size_t i = 0; i < found.boxes.size(); ++i) {
      const Box box = Resized(found.boxes[i], placement.scaled, placement.sent);
      const int64_t pixels = answer.mask_side * answer.mask_side;
      const float* mask = masks.const_data_ptr<float>() + static_cast<int64_t>(i) * pixels;
      answer.items.push_back({box.x_min, box.y_min, box.x_max, box.y_max, found.scores[i], found.labels[i],
                              std::vector<float>(mask, mask + pixels)});
    }
    return answer;
  }

  Description description_;
  MaskRcnnOptions options_;
  bool on_device_;    // whether candidates are chosen where the maps are
  BoxHead box_head_;  // first: packing its large layer needs the most extra memory
  Pyramid pyramid_;
  ProposalHead proposal_head_;
  MaskHead mask_head_;
  Recorded maps_;
};

// Sorts places by order of execution, with the pyramid from the top down.
std::vector<AttentionPlace> InOrder(std::vector<AttentionPlace> places) {
  std::sort(places.begin(), places.end());
  const auto pyramid = std::lower_bound(places.begin(), places.end(), AttentionPlace::kFpn1);
  std::reverse(pyramid, places.end());
  return places;
}

std::string AbsentNote(const std::vector<std::string>& modules) {
  return "the weights have no tensors for " + Joined(modules, ", ") + ": attention is the identity there";
}

}  // namespace

std::unique_ptr<Model> LoadMaskRcnn(const std::string& architecture, const Options& options,
                                    const std::string& weights_path, const std::vector<std::string>& labels,
                                    const Target& target) {
  const MaskRcnnTable table = MakeMaskRcnnTable(architecture, ParseMaskRcnnOptions(architecture, options));
  LoadedWeights weights = LoadMaskRcnnWeights(weights_path, table);
  weights.tensors.target = target;
  Description description = DescribeMaskRcnn(architecture, options, labels);
  for (const AttentionPlace place : InOrder(table.options.attention)) {
    const std::string name = AttentionName(place);
    if (weights.tensors.contains(name + ".out.weight")) description.attention_layers.push_back(name);
  }
  description.attention_by_position = !table.options.efficient && !description.attention_layers.empty();
  if (!weights.absent.empty()) description.notes.push_back(AbsentNote(weights.absent));
  return std::make_unique<MaskRcnn>(std::move(description), table, std::move(weights.tensors));
}

}  // namespace saccade::models
