#include "models/device/recorded.h"

#include <utility>

#include "kernels/common/cuda_graph.h"
#include "models/api/attention_probe.h"
#include "models/device/transfer.h"

namespace saccade::models {
namespace {

// Replaces a CUDA graph on the CPU: a replay runs the work again.
class OnceMore : public kernels::CudaGraph {
 public:
  void Record(const std::function<void()>& work) override {
    work_ = work;
    work_();
  }
  void Replay() override { work_(); }

 private:
  std::function<void()> work_;
};

// Maximum number of recordings; other shapes run without one. Each recording holds its activations, and a
// grid of buckets may have more shapes than fit into a GPU's memory.
constexpr size_t kMaxRecordings = 32;

}  // namespace

struct Recorded::Recording {
  at::Tensor pixels;  // input buffers of replays
  at::Tensor valid;
  std::vector<FeatureMap> maps;  // output buffers
  std::unique_ptr<kernels::CudaGraph> graph;
};

Recorded::Recorded(const Target& target, bool record, Pass pass)
    : target_(target), record_(record && (target.on_gpu() || target.replay_on_cpu)), pass_(std::move(pass)) {}

Recorded::~Recorded() = default;

std::vector<FeatureMap> Recorded::operator()(const at::Tensor& pixels, const Extents& extents) const {
  // A recording does not make attention maps, so a pass with a probe is run directly.
  if (!record_ || AttentionProbe::Current() != nullptr) return pass_({Sent(pixels, target_), extents});
  const std::lock_guard lock(mutex_);
  const std::vector<int64_t> shape = pixels.sizes().vec();
  auto found = recordings_.find(shape);
  if (found == recordings_.end() && recordings_.size() >= kMaxRecordings) {
    return pass_({Sent(pixels, target_), extents});
  }
  if (found == recordings_.end()) {
    auto recording = std::make_unique<Recording>();
    recording->pixels = Sent(pixels, target_);
    recording->valid = extents.AsValid(DeviceOf(target_));
    if (target_.on_gpu()) {
      recording->graph = kernels::MakeCudaGraph(target_.gpu);
    } else {
      recording->graph = std::make_unique<OnceMore>();
    }
    // The pass keeps these sizes for all replays; replays pass their extents in `valid`.
    recording->graph->Record(
        [this, to = recording.get(), extents] { to->maps = pass_({to->pixels, extents.With(to->valid)}); });
    found = recordings_.emplace(shape, std::move(recording)).first;
  }
  return Replay(*found->second, pixels, extents);
}

std::vector<FeatureMap> Recorded::Replay(Recording& recording, const at::Tensor& pixels,
                                         const Extents& extents) const {
  recording.pixels.copy_(Sent(pixels, target_));
  recording.valid.copy_(extents.AsValid());
  recording.graph->Replay();
  std::vector<FeatureMap> maps;
  for (const FeatureMap& map : recording.maps) {
    maps.push_back({map.values.clone(), map.extents.Again(extents)});
  }
  return maps;
}

}  // namespace saccade::models
