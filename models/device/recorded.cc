#include "models/device/recorded.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/MemoryFormat.h>
#include <c10/util/Exception.h>
#include <c10/util/accumulate.h>

#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "models/api/attention_probe.h"
#include "models/api/error_text.h"
#include "models/device/fetching.h"
#include "models/device/gpu_memory.h"
#include "models/device/out_of_memory.h"
#include "models/device/pinned.h"
#include "models/device/stream_lock.h"
#include "models/device/transfer.h"
#include "models/tasks/finite.h"

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

// Up to so many items each batch size has its own recording.
constexpr int64_t kExactBatch = 8;
// Shapes without a recording about which something is remembered. A grid of buckets has as many as clients
// choose to send.
constexpr size_t kMaxRemembered = 256;

Recorded::MakeGraph GraphsFor(const Target& target) {
  if (!target.on_gpu()) return [](kernels::CudaGraph*) { return std::make_unique<OnceMore>(); };
  return [gpu = target.gpu](kernels::CudaGraph* beside) { return kernels::MakeCudaGraph(gpu, beside); };
}

// The extents of `count` items: the last one's are repeated.
Extents Filled(const Extents& extents, int64_t count) {
  std::vector<Size> sizes = extents.sizes();
  if (static_cast<int64_t>(sizes.size()) == count) return extents;
  sizes.resize(static_cast<size_t>(count), sizes.back());
  return Extents(std::move(sizes));
}

// The strides of AsMap() for a tensor of this shape.
std::vector<int64_t> MapStrides(at::IntArrayRef shape) {
  return shape.size() == 4 ? c10::get_channels_last_strides_2d(shape)
                           : c10::get_channels_last_strides_3d(shape);
}

// The same memory as `x`, which may be freed meanwhile: the memory pool of a graph keeps it for the graph.
at::Tensor Unowned(const at::Tensor& x) {
  return at::for_blob(x.data_ptr(), x.sizes())
      .strides(x.strides())
      .target_device(x.device())
      .options(x.options())
      .make_tensor();
}

}  // namespace

int64_t RecordedBatch(int64_t count) {
  int64_t step = 1;
  while (step * kExactBatch < count) step *= 2;
  return (count + step - 1) / step * step;
}

struct Recorded::Recording {
  at::Tensor pixels;  // input buffers of replays; the first is part of inputs_
  at::Tensor valid;
  std::vector<FeatureMap> maps;  // output buffers
  std::unique_ptr<kernels::CudaGraph> graph;
  int64_t last_used = 0;  // as counted in passes_
};

Recorded::Recorded(const Target& target, bool record, Pass pass, MakeGraph make_graph,
                   const RecordingLimits& limits)
    : target_(target),
      record_(record && (target.on_gpu() || target.replay_on_cpu)),
      pass_(std::move(pass)),
      make_graph_(make_graph != nullptr ? std::move(make_graph) : GraphsFor(target)),
      limits_(limits),
      max_recordings_(limits.recordings) {}

Recorded::~Recorded() = default;

std::vector<FeatureMap> Recorded::operator()(const at::Tensor& pixels, const Extents& extents) const {
  at::Tensor sent;
  WithRoom([&] { sent = SentAsIs(pixels, target_); });
  std::vector<FeatureMap> maps;
  Run(std::move(sent), extents, [&](std::vector<FeatureMap> computed, bool shared) {
    maps = std::move(computed);
    if (!shared) return;
    for (FeatureMap& map : maps) map.values = map.values.clone();
  });
  return maps;
}

Recorded::Answer Recorded::Fetch(const at::Tensor& pixels, const Extents& extents) const {
  at::Tensor sent;
  std::optional<Fetching> finite;
  WithRoom([&] {
    sent = SentAsIs(pixels, target_);
    if (target_.on_gpu()) finite.emplace(FiniteItems(sent));
  });
  Answer answer;
  std::vector<Fetching> values;
  Run(std::move(sent), extents, [&](std::vector<FeatureMap> computed, bool shared) {
    values.clear();
    for (FeatureMap& map : computed) {
      // On the CPU nothing is fetched, and the next replay would overwrite the results.
      if (shared && !target_.on_gpu()) map.values = map.values.clone();
      values.emplace_back(std::exchange(map.values, {}));
    }
    answer.maps = std::move(computed);
  });
  for (size_t i = 0; i < values.size(); ++i) answer.maps[i].values = values[i].Wait().to(at::kFloat);
  if (finite) {
    const at::Tensor flags = finite->Wait();
    answer.finite_pixels.assign(flags.const_data_ptr<bool>(), flags.const_data_ptr<bool>() + flags.numel());
  } else {
    for (int64_t i = 0; i < pixels.size(0); ++i) answer.finite_pixels.push_back(AllFinite(pixels[i]));
  }
  return answer;
}

void Recorded::Run(at::Tensor sent, const Extents& extents, const Take& take) const {
  // A recording does not make attention maps, so a pass with a probe is run directly.
  if (record_ && AttentionProbe::Current() == nullptr) {
    try {
      if (RunFromRecording(sent, extents, take)) return;
    } catch (const std::exception& error) {
      if (!IsOutOfMemory(error)) throw;
      DropRecordings();
    }
  }
  RunDirectly(std::move(sent), extents, take);
}

void Recorded::RunDirectly(at::Tensor sent, const Extents& extents, const Take& take) const {
  FeatureMap pictures{.values = {}, .extents = extents};
  WithRoom([&] { pictures.values = AsMap(sent, target_); });
  sent.reset();
  WithRoom([&] { take(pass_(pictures), /*shared=*/false); });
}

void Recorded::WithRoom(const std::function<void()>& work) const {
  try {
    return work();
  } catch (const std::exception& error) {
    if (!IsOutOfMemory(error) || !DropRecordings()) throw;
  }
  work();
}

bool Recorded::DropRecordings() const {
  const std::lock_guard lock(mutex_);
  if (recordings_.empty()) return false;
  Clear();
  return true;
}

void Recorded::Clear() const {
  recordings_.clear();
  inputs_.reset();
  pool_bytes_ = 0;
}

bool Recorded::RunFromRecording(const at::Tensor& sent, const Extents& extents, const Take& take) const {
  Shape shape = sent.sizes().vec();
  shape[0] = RecordedBatch(shape[0]);
  {
    const std::lock_guard lock(mutex_);
    ++passes_;
    if (const auto found = recordings_.find(shape); found != recordings_.end()) {
      Replay(*found->second, sent, extents, take);
      return true;
    }
    if (!IsWorthRecording(shape)) return false;
  }
  bool kept = true;
  {
    const StreamRecording alone;
    const std::lock_guard lock(mutex_);
    // Another thread may have recorded the shape meanwhile, or found memory insufficient for that.
    if (const auto found = recordings_.find(shape); found != recordings_.end()) {
      Replay(*found->second, sent, extents, take);
      return true;
    }
    if (IsPutOff(shape)) return false;
    Replay(Record(shape, sent, extents), sent, extents, take);
    kept = KeepWithinMemory(shape);
  }
  // LibTorch keeps the memory of a pool without graphs for nobody until caches are emptied.
  if (!kept) FreeUnusedGpuMemory();
  return true;
}

bool Recorded::KeepWithinMemory(const Shape& shape) const {
  const kernels::GraphMemory memory = recordings_.at(shape)->graph->memory();
  const int64_t bound = memory.gpu_bytes / kPartsOfGpuMemory;
  const int64_t grown = memory.pool_bytes - pool_bytes_;
  pool_bytes_ = memory.pool_bytes;
  if (memory.pool_bytes <= bound) {
    put_off_.erase(shape);
    return true;
  }
  const size_t count = recordings_.size();
  if (count == 1 || grown > bound) {
    PutOffRecording(shape);
    TORCH_WARN("recording passes over batches of ", at::IntArrayRef(shape), " took ", grown,
               " bytes of the GPU's memory; expected at most ", bound, ", one part in ", kPartsOfGpuMemory,
               "; the next ", put_off_[shape].to_retry, " are computed without a recording");
  } else {
    max_recordings_ = count - 1;
    TORCH_WARN(count, " recordings took ", memory.pool_bytes, " bytes of the GPU's memory; expected at most ",
               bound, ", one part in ", kPartsOfGpuMemory,
               "; they are freed, and from now on this model has at most ", max_recordings_);
  }
  Clear();
  return false;
}

bool Recorded::IsPutOff(const Shape& shape) const {
  const auto found = put_off_.find(shape);
  return found != put_off_.end() && found->second.passes < found->second.to_retry;
}

void Recorded::PutOffRecording(const Shape& shape) const {
  if (const auto found = put_off_.find(shape); found != put_off_.end()) {
    found->second = {0, std::min(2 * found->second.to_retry, kMaxPassesToRetry)};
    return;
  }
  if (put_off_.size() >= kMaxRemembered) put_off_.clear();
  put_off_[shape];
}

bool Recorded::IsWorthRecording(const Shape& shape) const {
  if (const auto found = put_off_.find(shape); found != put_off_.end()) ++found->second.passes;
  if (IsPutOff(shape)) return false;
  const bool has_room = recordings_.size() < max_recordings_;
  if (has_room && limits_.passes <= 1) return true;
  if (waiting_.size() >= kMaxRemembered) waiting_.clear();
  Waiting& waiting = waiting_[shape];
  if (has_room) return ++waiting.passes >= limits_.passes;
  if (waiting.passes == 0 || LeastRecentlyUsed()->second->last_used > waiting.since) waiting = {passes_, 0};
  return ++waiting.passes >= kPassesToReplace;
}

Recorded::Recordings::iterator Recorded::LeastRecentlyUsed() const {
  return std::min_element(recordings_.begin(), recordings_.end(), [](const auto& a, const auto& b) {
    return a.second->last_used < b.second->last_used;
  });
}

Recorded::Recording& Recorded::Record(const Shape& shape, const at::Tensor& sent,
                                      const Extents& extents) const {
  waiting_.erase(shape);
  while (recordings_.size() >= max_recordings_) {
    const auto replaced = LeastRecentlyUsed();
    if (!std::exchange(told_replaced_, true)) {
      TORCH_WARN("batches come in more shapes than this model may have recordings, which are ",
                 max_recordings_, "; that of ", at::IntArrayRef(replaced->first),
                 " was used least recently, and that of ", at::IntArrayRef(shape),
                 " replaces it; later replacements are not logged. Configure fewer "
                 "buckets if passes without a recording take too long");
    }
    recordings_.erase(replaced);
  }
  if (recordings_.empty()) pool_bytes_ = 0;
  auto recording = std::make_unique<Recording>();
  try {
    const int64_t numbers = c10::multiply_integers(shape);
    if (!inputs_.defined() || inputs_.numel() < numbers)
      inputs_ = at::empty({numbers}, sent.options().dtype(TypeOf(target_)));
    recording->pixels = inputs_.as_strided(shape, MapStrides(shape));
    const Extents filled = Filled(extents, shape[0]);
    recording->valid = filled.AsValid(DeviceOf(target_));
    recording->pixels.narrow(0, 0, sent.size(0)).copy_(sent);
    recording->pixels.narrow(0, sent.size(0), shape[0] - sent.size(0)).zero_();
    recording->graph = make_graph_(recordings_.empty() ? nullptr : recordings_.begin()->second->graph.get());
    // The pass keeps these sizes for all replays; replays pass their extents in `valid`.
    recording->graph->Record(
        [this, to = recording.get(), filled] { to->maps = pass_({to->pixels, filled.With(to->valid)}); });
  } catch (const std::exception& error) {
    if (IsOutOfMemory(error)) {
      PutOffRecording(shape);
      TORCH_WARN("no memory to record passes over batches of ", at::IntArrayRef(shape),
                 ", of which the next ", put_off_[shape].to_retry,
                 " are computed without a recording: ", ErrorText(error));
    }
    throw;
  }
  if (target_.on_gpu()) {
    for (FeatureMap& map : recording->maps) map.values = Unowned(map.values);
  }
  return *(recordings_[shape] = std::move(recording));
}

void Recorded::Replay(Recording& recording, const at::Tensor& sent, const Extents& extents,
                      const Take& take) const {
  const int64_t count = sent.size(0);
  const int64_t rest = recording.pixels.size(0) - count;
  recording.last_used = passes_;
  // One kernel casts and changes the layout.
  recording.pixels.narrow(0, 0, count).copy_(sent);
  if (rest > 0) recording.pixels.narrow(0, count, rest).copy_(recording.pixels.narrow(0, count - 1, 1));
  const at::Tensor valid = InPinned(Filled(extents, count + rest).AsValid());
  recording.valid.copy_(valid, /*non_blocking=*/IsPinned(valid));
  recording.graph->Replay();
  std::vector<FeatureMap> maps;
  for (const FeatureMap& map : recording.maps) {
    const at::Tensor values = rest > 0 ? map.values.narrow(0, 0, count) : map.values;
    maps.push_back({values, map.extents.Again(extents)});
  }
  take(std::move(maps), /*shared=*/true);
}

}  // namespace saccade::models
