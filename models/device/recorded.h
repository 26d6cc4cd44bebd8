// Records a pass over maps as a CUDA graph, once for each shape, and replays it: hundreds of small launches
// become one.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "kernels/common/cuda_graph.h"
#include "models/api/target.h"
#include "models/layers/feature_map.h"

namespace saccade::models {

// The batch size of the recording that computes `count` items: up to 8 items `count`, otherwise rounded up by
// less than a quarter, so that there are four recordings for each doubling. The last item fills the rest.
int64_t RecordedBatch(int64_t count);

// Which shapes of a network are recorded.
struct RecordingLimits {
  // Recordings at once, because each also takes time to make and some memory of its own.
  size_t recordings = 32;
  // The pass over a shape at which it is recorded, while there is room for another recording. A recording
  // costs about three passes, so a network that computes each client's own size waits for sizes that come
  // again.
  int passes = 1;
};

class Recorded {
 public:
  // Computes maps on the target from a batch's pictures on the target. It must derive extents only through
  // FeatureMap, must not read values, and must do the same work each time for the same shape. If a
  // batch may exceed 8 items, it is the first side of each map.
  using Pass = std::function<std::vector<FeatureMap>(const FeatureMap& pictures)>;
  // Makes an empty graph, which may use the memory of `beside`, another recording, if that is not null.
  using MakeGraph = std::function<std::unique_ptr<kernels::CudaGraph>(kernels::CudaGraph* beside)>;

  static constexpr size_t kMaxRecordings = RecordingLimits().recordings;
  // Another shape replaces the recording that was used least recently if it came so often since that use: a
  // recording takes as long as some passes, and more shapes in turn than there is room for would be recorded
  // each time.
  static constexpr int kPassesToReplace = 8;
  // If memory is insufficient to record a shape, so many passes over it are run before it is tried again. The
  // number doubles with each failure, up to the second one. A failure frees all recordings, and to make them
  // again takes up to 3 * kMaxRecordings passes.
  static constexpr int64_t kPassesToRetry = 1024;
  static constexpr int64_t kMaxPassesToRetry = 16384;
  // The recordings of a network may take one part in so many of the GPU's memory. Their pool keeps its memory
  // until all of them are gone.
  static constexpr int64_t kPartsOfGpuMemory = 4;

  // If `record` is false, on the CPU, or if the calling thread has an AttentionProbe, the pass is run
  // directly. `make_graph` is for tests; by default graphs are CUDA's, and on the CPU run the pass again.
  Recorded(const Target& target, bool record, Pass pass, MakeGraph make_graph = nullptr,
           const RecordingLimits& limits = {});
  ~Recorded();

  // `pixels` is float32 on the CPU. The caller owns the results. Thread-safe; replays run one at a time, and
  // recordings wait for the stream's other passes (StreamRecording). If memory is insufficient for a
  // recording, frees all of them and runs the pass directly, as the next kPassesToRetry passes over this
  // shape. If recordings take more than their part of the GPU's memory, frees all of them too. If the last
  // one alone took too much, its shape is put off in the same way; otherwise there are fewer recordings from
  // then on.
  std::vector<FeatureMap> operator()(const at::Tensor& pixels, const Extents& extents) const;

  // What a pass computed, on the CPU.
  struct Answer {
    std::vector<FeatureMap> maps;  // float32
    // For each item, whether its pixels are finite. Checked on the target.
    std::vector<bool> finite_pixels;
  };
  // As operator(), with results on the CPU. Blocks until they are there, but not for passes that other
  // threads begin meanwhile.
  Answer Fetch(const at::Tensor& pixels, const Extents& extents) const;

  // Frees all recordings, whose memory something else needs. Returns false if there were none. Thread-safe.
  bool DropRecordings() const;

 private:
  struct Recording;
  using Shape = std::vector<int64_t>;
  using Recordings = std::map<Shape, std::unique_ptr<Recording>>;
  // Passes of a shape without a recording since a pass, both as counted in passes_.
  struct Waiting {
    int64_t since = 0;
    int passes = 0;
  };
  // A shape for whose recording memory was insufficient.
  struct PutOff {
    int64_t passes = 0;                 // over the shape since then
    int64_t to_retry = kPassesToRetry;  // passes after which it is tried again
  };

  // Takes a pass's results when the pass has been enqueued. If `shared`, the next replay overwrites the maps.
  // May be called with mutex_ locked, so that it should not wait for the GPU, and once more if memory was
  // insufficient.
  using Take = std::function<void(std::vector<FeatureMap> maps, bool shared)>;

  // In the following `sent` has the pixels on the target, in float32.
  void Run(at::Tensor sent, const Extents& extents, const Take& take) const;
  void RunDirectly(at::Tensor sent, const Extents& extents, const Take& take) const;
  // Returns false if the shape is to be computed without a recording.
  bool RunFromRecording(const at::Tensor& sent, const Extents& extents, const Take& take) const;
  // Runs `work`, and once more without the recordings' memory if memory was insufficient.
  void WithRoom(const std::function<void()>& work) const;
  // The following require mutex_.
  void Clear() const;
  bool IsPutOff(const Shape& shape) const;
  void PutOffRecording(const Shape& shape) const;
  // Returns true if the recordings keep to their part of the GPU's memory. Otherwise frees them and returns
  // false. `shape` is that of the last recording.
  bool KeepWithinMemory(const Shape& shape) const;
  // Counts the pass over the shape.
  bool IsWorthRecording(const Shape& shape) const;
  Recordings::iterator LeastRecentlyUsed() const;
  // Also requires that nothing else uses the stream.
  Recording& Record(const Shape& shape, const at::Tensor& sent, const Extents& extents) const;
  void Replay(Recording& recording, const at::Tensor& sent, const Extents& extents, const Take& take) const;

  Target target_;
  bool record_;
  Pass pass_;
  MakeGraph make_graph_;
  RecordingLimits limits_;
  // Guards what follows, and the recordings' contents; held while recording and replaying. Locked after the
  // stream.
  mutable std::mutex mutex_;
  // The input of all recordings, as large as the largest needs. A smaller one that it replaced lives as long
  // as the recordings that read it.
  mutable at::Tensor inputs_;
  mutable Recordings recordings_;       // by the shape of the pictures, with the recorded batch size
  mutable size_t max_recordings_;       // at most limits_.recordings
  mutable int64_t pool_bytes_ = 0;      // of all recordings, after the last one was made
  mutable bool told_replaced_ = false;  // whether the log says that recordings replace others
  mutable int64_t passes_ = 0;
  mutable std::map<Shape, Waiting> waiting_;
  mutable std::map<Shape, PutOff> put_off_;
};

}  // namespace saccade::models
