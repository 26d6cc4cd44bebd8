// Keeps a layer on a GPU from taking a large part of its memory as workspace: LibTorch lets cuDNN choose
// algorithms that take any amount, which in float32 can be many times the maps.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

namespace saccade::models {

// Computes a layer's result in a certain way.
using LayerFunction = std::function<at::Tensor()>;

// Maximum bytes that a layer may allocate beside its result.
inline constexpr int64_t kMaxWorkspaceBytes = int64_t{4} << 30;

struct WayChoice {
  size_t way = 0;
  // Whether no way that was tried lacked memory, which another time it might have.
  bool settled = true;
  // Whether the way ran without an error when it was chosen.
  bool ran = false;
};

// Chooses the first of `ways` that allocates at most `bound` bytes beside its result, or else the one that
// allocates least. Calls each until then three times, because the first call of a library tries several
// algorithms, and because other threads allocate meanwhile: the smaller figure of the other two counts. A way
// that throws is not chosen, unless all do: then the first one is. `allocated` returns the bytes that were
// ever allocated on the device.
WayChoice WayWithin(int64_t bound, const std::vector<LayerFunction>& ways,
                    const std::function<int64_t()>& allocated);

// The ways that one layer has chosen, by the shape of its input. Thread-safe.
class WorkspaceChoice {
 public:
  // Choices of a shape that are made if none is settled; the last one stays. A recording runs a pass twice
  // before it captures it, so that none is made during a capture.
  static constexpr int kMaxChoices = 2;

  // Returns the way that `choose` chose for the shape in the first call, or in the second one if the first
  // choice was not settled.
  size_t Get(at::IntArrayRef shape, const std::function<WayChoice()>& choose);

 private:
  // Shapes that are remembered; all are forgotten if there are more.
  static constexpr size_t kMaxShapes = 256;

  struct Chosen {
    WayChoice choice;
    int choices = 0;
  };

  std::mutex mutex_;
  std::map<std::vector<int64_t>, Chosen> ways_;  // guarded by mutex_
};

}  // namespace saccade::models
