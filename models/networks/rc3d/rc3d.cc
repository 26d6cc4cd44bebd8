#include "models/networks/rc3d/rc3d.h"

#include <c10/core/InferenceMode.h>

#include <array>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "models/api/attention_probe.h"
#include "models/device/transfer.h"
#include "models/layers/efficient_attention.h"
#include "models/networks/rc3d/action_head.h"
#include "models/networks/rc3d/describe.h"
#include "models/networks/rc3d/proposals.h"
#include "models/networks/rc3d/regions.h"
#include "models/networks/rc3d/table.h"
#include "models/networks/resnet/resnet.h"
#include "models/tasks/check_batch.h"
#include "models/tasks/finite.h"

namespace saccade::models {
namespace {

// Approximate part of a long clip's pass that is done after the stem, and after stages 0 to 2.
constexpr double kStemShare = 0.3;
constexpr std::array<double, 3> kStageShares = {0.6, 0.75, 0.85};

// The stage that computes proposals.
constexpr int kRegionStage = kStageShares.size();

// Clips are computed one by one. One clip's maps are large enough to keep all cores busy, memory is that of
// one clip, and a clip's result cannot depend on the others.
class Rc3d : public Model {
 public:
  Rc3d(Description description, const Rc3dOptions& options, TensorMap tensors)
      : description_(std::move(description)),
        options_(options),
        target_(tensors.target),
        proposal_head_(Taken(tensors, "tpn.")),
        action_head_(Taken(tensors, "head.")) {
    for (int stage = 0; stage <= kRegionStage; ++stage) {
      const std::string name = AttentionBehind(options, stage);
      if (!name.empty() && tensors.contains(name + ".query.weight"))
        attention_.try_emplace(stage, tensors, name, options.heads, options.normalization);
    }
    backbone_.emplace(Rc3dBackbone(options), "", std::move(tensors), /*exact=*/false);
  }

  const Description& description() const override { return description_; }

  std::vector<TaskResult> Run(const Batch& batch) const override {
    const c10::InferenceMode inference;
    CheckBatch(description_, batch);
    const int64_t frames = batch.pixels.size(2);
    TORCH_CHECK(frames % kRc3dStride == 0 && frames <= options_.frames, description_.architecture,
                ": expected clips of at most ", options_.frames, " frames, a multiple of ", kRc3dStride,
                ", got ", frames);
    std::vector<TaskResult> results;
    for (size_t i = 0; i < batch.placements.size(); ++i) {
      AttentionProbe::StartAt(i);
      const auto wanted = [&](double done) { return !batch.progress || batch.progress(i, done); };
      results.push_back(
          Locate(batch.pixels.narrow(0, static_cast<int64_t>(i), 1), batch.placements[i].sent_depth, wanted));
    }
    return results;
  }

 private:
  using Wanted = std::function<bool(double done)>;

  TaskResult Locate(const at::Tensor& clip, int64_t frames, const Wanted& wanted) const {
    if (!AllFinite(clip)) return NotFiniteInput();
    const at::Tensor map = Map(clip, wanted);
    if (!map.defined()) return Failure{"the clip was cancelled: no client waits for its result"};
    // The heads turn NaN into 0 (oneDNN's ReLU does), so that their own outputs would not show it.
    if (!AllFiniteOnDevice(map)) return NotFinite("a feature");
    const ProposalNumbers numbers = proposal_head_(map);
    if (!AllFinite(numbers.logits) || !AllFinite(numbers.offsets)) return NotFinite("a proposal");
    const std::vector<Segment> proposals = Propose(numbers, frames, options_);
    if (proposals.empty()) return Actions{.items = {}, .frames = frames};

    const ActionNumbers actions = action_head_(Regions(map, proposals));
    if (!AllFinite(actions.scores) || !AllFinite(actions.offsets)) return NotFinite("a score or a segment");
    return FindActions(actions, proposals, frames, options_);
  }

  // Returns the map for proposals; undefined if the clip is no longer wanted.
  at::Tensor Map(const at::Tensor& clip, const Wanted& wanted) const {
    FeatureMap x = backbone_->Stem({Sent(clip, target_), {}});
    if (!wanted(kStemShare)) return {};
    for (int stage = 0; stage < static_cast<int>(kStageShares.size()); ++stage) {
      x = backbone_->Stage(stage, std::move(x));
      x.values = Attended(stage, std::move(x.values));
      if (!wanted(kStageShares.at(static_cast<size_t>(stage)))) return {};
    }
    return x.values;
  }

  // Returns the proposals' features, [proposals, C, ...].
  at::Tensor Regions(const at::Tensor& map, const std::vector<Segment>& proposals) const {
    // The samples are proposals here, and not items of the batch, so that no probe may see them.
    const AttentionProbe::Scope unseen(nullptr);
    return Attended(kRegionStage, backbone_->Stage(kRegionStage, {PoolSegments(map, proposals), {}}).values);
  }

  at::Tensor Attended(int stage, at::Tensor x) const {
    const auto found = attention_.find(stage);
    return found == attention_.end() ? std::move(x) : found->second(x);
  }

  TaskResult NotFinite(const std::string& output) const {
    return NotFiniteOutput(description_.architecture, output);
  }

  Description description_;
  Rc3dOptions options_;
  Target target_;
  TemporalProposalHead proposal_head_;
  ActionHead action_head_;
  std::map<int, EfficientAttention> attention_;  // by the stage before it
  std::optional<Resnet> backbone_;
};

}  // namespace

std::unique_ptr<Model> LoadRc3d(const std::string& architecture, const Options& options,
                                const std::string& weights_path, const std::vector<std::string>& labels,
                                const Target& target) {
  const Rc3dOptions parsed = ParseRc3dOptions(architecture, options);
  LoadedWeights weights = LoadWeights(weights_path, RecordRc3d(parsed).tensors());
  weights.tensors.target = target;
  Description description = DescribeRc3d(architecture, options, labels);
  for (int stage = 0; stage < kRegionStage; ++stage) {
    const std::string name = AttentionBehind(parsed, stage);
    if (!name.empty() && weights.tensors.contains(name + ".query.weight"))
      description.attention_layers.push_back(name);
  }
  for (const std::string& module : weights.absent) description.notes.push_back(AbsentNote(module));
  return std::make_unique<Rc3d>(std::move(description), parsed, std::move(weights.tensors));
}

}  // namespace saccade::models
