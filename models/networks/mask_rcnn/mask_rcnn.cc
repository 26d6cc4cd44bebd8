#include "models/networks/mask_rcnn/mask_rcnn.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/randn.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>
#include <variant>

#include "models/api/error_text.h"
#include "models/api/text.h"
#include "models/device/out_of_memory.h"
#include "models/device/recorded.h"
#include "models/device/transfer.h"
#include "models/networks/mask_rcnn/agreement.h"
#include "models/networks/mask_rcnn/box_head.h"
#include "models/networks/mask_rcnn/candidates.h"
#include "models/networks/mask_rcnn/checkpoint.h"
#include "models/networks/mask_rcnn/describe.h"
#include "models/networks/mask_rcnn/fixed_head.h"
#include "models/networks/mask_rcnn/mask_head.h"
#include "models/networks/mask_rcnn/proposals.h"
#include "models/networks/mask_rcnn/pyramid.h"
#include "models/networks/mask_rcnn/regions.h"
#include "models/networks/mask_rcnn/tensors.h"
#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

// Two pictures of noise, the one larger than the other, and the same in a second batch of the same shape with
// their sizes exchanged: a replay has to look at them.
std::vector<Batch> TrialBatches(const Buckets& buckets) {
  constexpr int64_t kSide = 64;
  Size bucket;
  if (buckets.sizes.empty()) {
    bucket.height = bucket.width = (kSide + buckets.stride - 1) / buckets.stride * buckets.stride;
  } else {
    bucket = *std::min_element(buckets.sizes.begin(), buckets.sizes.end(),
                               [](Size a, Size b) { return a.height * a.width < b.height * b.width; });
  }
  const Size part{bucket.height - bucket.height / 3, bucket.width - bucket.width / 4};
  const auto of = [bucket](Size scaled) { return Placement{scaled, scaled, bucket}; };
  std::vector<Batch> batches;
  // Not the process's generator, from which loading a model takes nothing.
  at::Generator random = at::detail::createCPUGenerator(/*seed_val=*/1);
  for (const auto& [first, second] : {std::pair(bucket, part), std::pair(part, bucket)}) {
    const Extents extents(std::vector<Size>{first, second});
    at::Tensor pixels = at::randn({2, 3, bucket.height, bucket.width}, random, at::kFloat);
    extents.ZeroBeyond(pixels);
    batches.push_back({pixels, {of(first), of(second)}});
  }
  return batches;
}

// The convolutions up to the RPN run over the whole batch. The rest runs picture by picture, because its
// exact results would depend on the number of regions in the other pictures. There are two ways to do it:
//   by the host  The host chooses the boxes, in vectors of as many as there are. The CPU's way.
//   whole        A pass has fixed shapes, is recorded from the pixels to the masks, and never waits for the
//                host (FixedHead). The GPU's way, if a trial at load gives what the host finds.
class MaskRcnn : public Model {
 public:
  MaskRcnn(Description description, const MaskRcnnTable& table, TensorMap tensors)
      : description_(std::move(description)),
        options_(table.options),
        target_(tensors.target),
        on_device_(tensors.target.on_gpu() || tensors.target.replay_on_cpu),
        box_head_(table, Taken(tensors, "roi_heads.box_")),
        pyramid_(table, Taken(tensors, "backbone.")),
        proposal_head_(Taken(tensors, "rpn.")),
        mask_head_(Taken(tensors, "roi_heads.mask_")),
        fixed_head_(table, box_head_, mask_head_, tensors.target) {
    if (on_device_ && FixedHead::Fits(table) && AgreesWithHost(table)) {
      rows_.emplace(target_, /*record=*/true,
                    [this](const FeatureMap& pictures) { return Rows(fixed_head_, pictures); });
    }
    // Beside rows_, whose recordings have their part of the GPU's memory, maps are for few pictures.
    maps_.emplace(target_, /*record=*/!rows_, [this](const FeatureMap& pictures) { return Maps(pictures); });
  }

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    const c10::InferenceMode inference;
    CheckBatch(description_, batch);
    if (rows_) return RunWhole(batch);
    return FinishByHost((*maps_)(batch.pixels, Extents::Of(batch.placements)), batch, options_);
  }

 private:
  // One row of FixedHead for each picture.
  std::vector<FeatureMap> Rows(const FixedHead& head, const FeatureMap& pictures) const {
    const auto [levels, numbers] = Halves(Maps(pictures));
    return {{head(levels, numbers, pictures), pictures.extents}};
  }

  // REQUIRES: rows_ is not empty.
  std::vector<TaskResult> RunWhole(const Batch& batch) const {
    const at::Tensor on_device = (*rows_)(batch.pixels, Extents::Of(batch.placements)).front().values;
    // Looked at while a GPU computes the rows.
    const std::vector<bool> finite_inputs = FiniteInputs(batch);
    const at::Tensor rows = Fetched(on_device).contiguous();
    std::vector<TaskResult> results;
    for (size_t i = 0; i < finite_inputs.size(); ++i) {
      if (!finite_inputs[i]) {
        results.push_back(NotFiniteInput());
        continue;
      }
      const FixedAnswer answer = ReadFixed(rows[static_cast<int64_t>(i)]);
      results.push_back(NeedsHost(answer) ? OneByHost(batch, i) : Answered(answer, batch.placements[i]));
    }
    return results;
  }

  static bool NeedsHost(const FixedAnswer& answer) {
    return answer.finite_proposals && answer.finite_boxes && !answer.complete;
  }

  TaskResult Answered(const FixedAnswer& answer, const Placement& placement) const {
    if (!answer.finite_proposals) return NotFinite("a proposal");
    if (!answer.finite_boxes) return NotFinite("a score or a box");
    if (!answer.finite_masks) return NotFinite("a mask");
    return Answer(answer.found, answer.masks, placement);
  }

  // REQUIRES: rows_ is not empty.
  TaskResult OneByHost(const Batch& batch, size_t picture) const {
    const Batch one{batch.pixels.narrow(0, static_cast<int64_t>(picture), 1), {batch.placements[picture]}};
    const auto answer = [&] {
      return FinishByHost((*maps_)(one.pixels, Extents::Of(one.placements)), one, options_).front();
    };
    try {
      return answer();
    } catch (const std::exception& error) {
      if (!IsOutOfMemory(error) || !rows_->DropRecordings()) throw;
    }
    return answer();
  }

  // `maps` is what Maps() returned for the batch.
  std::vector<TaskResult> FinishByHost(std::vector<FeatureMap> maps, const Batch& batch,
                                       const MaskRcnnOptions& options) const {
    const auto [levels, numbers] = Halves(std::move(maps));
    // Looked at while a GPU computes the maps.
    const std::vector<bool> finite_inputs = FiniteInputs(batch);
    const std::vector<PictureCandidates> candidates =
        ChooseCandidates(numbers, options.proposals, options.exact, on_device_);

    std::vector<TaskResult> results;
    for (size_t i = 0; i < candidates.size(); ++i) {
      results.push_back(finite_inputs[i] ? Finish(levels, candidates[i], i, batch.placements[i], options)
                                         : NotFiniteInput());
    }
    return results;
  }

  // Returns the pyramid's levels, followed by the proposal head's output for each level.
  std::vector<FeatureMap> Maps(const FeatureMap& pictures) const {
    std::vector<FeatureMap> maps = pyramid_(pictures);
    const size_t levels = maps.size();
    for (size_t level = 0; level < levels; ++level)
      maps.push_back({proposal_head_(maps[level].values), maps[level].extents});
    return maps;
  }

  static std::pair<std::vector<FeatureMap>, std::vector<FeatureMap>> Halves(std::vector<FeatureMap> maps) {
    const auto middle = static_cast<int64_t>(maps.size() / 2);
    std::vector<FeatureMap> numbers(maps.begin() + middle, maps.end());
    maps.resize(numbers.size());
    return {std::move(maps), std::move(numbers)};
  }

  static std::vector<bool> FiniteInputs(const Batch& batch) {
    std::vector<bool> finite;
    for (int64_t i = 0; i < batch.pixels.size(0); ++i) finite.push_back(AllFinite(batch.pixels[i]));
    return finite;
  }

  // Computes two pictures of noise by the host, and whole with a recording and its replay. Boxes of any score
  // are compared, because a network may be sure of none in noise. Warns and returns false if the answers
  // differ, if neither way finds a box, or if the pass cannot be recorded.
  bool AgreesWithHost(MaskRcnnTable table) const {
    const c10::InferenceMode inference;
    const bool full = target_.precision == Precision::kFloat32;
    table.options.score_threshold = 0;
    bool compared = false;
    try {
      const FixedHead head(table, box_head_, mask_head_, target_);
      const Recorded rows(target_, /*record=*/true,
                          [&](const FeatureMap& pictures) { return Rows(head, pictures); });
      for (const Batch& batch : TrialBatches(options_.buckets)) {
        const Extents extents = Extents::Of(batch.placements);
        auto expected = FinishByHost(Maps({Sent(batch.pixels, target_), extents}), batch, table.options);
        const at::Tensor got_rows = Fetched(rows(batch.pixels, extents).front().values).contiguous();
        for (size_t i = 0; i < expected.size(); ++i) {
          const FixedAnswer answer = ReadFixed(got_rows[static_cast<int64_t>(i)]);
          const TaskResult got = Answered(answer, batch.placements[i]);
          // The best ones are there even if there may be more.
          if (NeedsHost(answer)) KeepBest(expected[i], answer.found.boxes.size());
          compared = compared || !IsEmpty(got) || !IsEmpty(expected[i]);
          const double part = Agreement(got, expected[i], full ? 1e-3 : 0.05);
          if (part >= (full ? 0.9 : 0.5)) continue;
          TORCH_WARN(description_.architecture, ": at load, a recorded pass found ", 100 * part,
                     " % of the boxes that the host finds in a picture of noise; expected at least ",
                     full ? 90 : 50, ", so the host chooses the boxes, which is slower");
          return false;
        }
      }
    } catch (const std::exception& error) {
      TORCH_WARN(description_.architecture,
                 ": a pass cannot be recorded whole, so the host chooses the boxes, which is slower: ",
                 ErrorText(error));
      return false;
    }
    if (!compared) {
      TORCH_WARN(description_.architecture,
                 ": at load, no box was found in pictures of noise, so a recorded pass could not be compared "
                 "with the host's; the host chooses the boxes, which is slower");
    }
    return compared;
  }

  static bool IsEmpty(const TaskResult& result) {
    const auto* detections = std::get_if<Detections>(&result);
    return detections != nullptr && detections->items.empty();
  }

  static void KeepBest(TaskResult& result, size_t count) {
    auto* detections = std::get_if<Detections>(&result);
    if (detections != nullptr && detections->items.size() > count) detections->items.resize(count);
  }

  TaskResult Finish(const std::vector<FeatureMap>& levels, const PictureCandidates& candidates,
                    size_t picture, const Placement& placement, const MaskRcnnOptions& options) const {
    if (!candidates.finite) return NotFinite("a proposal");
    const at::Tensor regions = Propose(candidates.levels, placement, options);
    if (regions.size(0) == 0) return Answer({}, {}, placement);

    const RegionFeatures features = FeaturesOf(levels, static_cast<int64_t>(picture), options.exact);
    const BoxNumbers boxes = box_head_(Pool(features, regions, kBoxSide));
    if (!AllFinite(boxes.scores) || !AllFinite(boxes.deltas)) return NotFinite("a score or a box");
    const Found found = Detect(boxes, regions, placement.scaled, options);
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
  Target target_;
  bool on_device_;    // whether the host's candidates are chosen where the maps are
  BoxHead box_head_;  // first: packing its large layer needs the most extra memory
  Pyramid pyramid_;
  ProposalHead proposal_head_;
  MaskHead mask_head_;
  FixedHead fixed_head_;
  std::optional<Recorded> rows_;  // if empty, the host chooses the boxes
  std::optional<Recorded> maps_;  // never empty after the constructor
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
