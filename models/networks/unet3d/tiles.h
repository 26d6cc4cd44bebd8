// Divides a map into parts that are computed one after another. Does not include LibTorch.
#pragma once

#include <array>
#include <cstdint>

namespace saccade::models {

// Sizes or positions along depth, height and width.
using VolumeSides = std::array<int64_t, 3>;

inline int64_t Positions(const VolumeSides& sides) { return sides[0] * sides[1] * sides[2]; }

// A box within a map.
struct Part {
  VolumeSides begin = {};
  VolumeSides size = {};

  // Returns the same part relative to `outer`, which contains it.
  Part From(const Part& outer) const;
  // Returns the same part in a map with one position for each `step`. REQUIRES: begin and size are multiples
  // of `step`.
  Part Over(const VolumeSides& step) const;

  friend bool operator==(const Part&, const Part&) = default;
};

// Cores, which cover each position of a map exactly once, and the windows around them that are computed. All
// windows have the same size, so that convolutions see few shapes: at an edge they are moved inwards instead
// of cut.
class Tiling {
 public:
  // Makes cores of at most `longest` along each axis, 0 meaning the whole side. Cores and windows begin at
  // multiples of `multiple`. REQUIRES: sides are multiples of it, or not longer than `longest`.
  Tiling(const VolumeSides& sides, const VolumeSides& longest, int64_t multiple);

  int64_t count() const { return Positions(counts_); }
  Part Core(int64_t index) const;
  // Returns the core with `halo` more positions on each side, limited by the map. REQUIRES: `halo` is a
  // multiple of `multiple`.
  Part Around(const Part& core, int64_t halo) const;
  // Total positions of all windows.
  int64_t Computed(int64_t halo) const;

 private:
  VolumeSides WindowSize(int64_t halo) const;

  VolumeSides sides_, core_, counts_;
};

}  // namespace saccade::models
