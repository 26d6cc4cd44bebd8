// How a map is cut into parts that are computed one after another. No LibTorch here.
#pragma once

#include <array>
#include <cstdint>

namespace saccade::models {

// Along depth, height and width.
using Sides = std::array<int64_t, 3>;

inline int64_t Positions(const Sides& sides) { return sides[0] * sides[1] * sides[2]; }

// A box of a map.
struct Part {
  Sides begin = {};
  Sides size = {};

  // The same seen from the beginning of `outer`, which holds it.
  Part From(const Part& outer) const;
  // The same in a map that has one position for each `step`. REQUIRES multiples.
  Part Over(const Sides& step) const;

  friend bool operator==(const Part&, const Part&) = default;
};

// Cores that cover a map once each, in their order, and the windows around them that are computed. Windows
// are of one size, so that convolutions meet few shapes: near an edge they are moved inwards instead of cut.
class Tiling {
 public:
  // Cores of at most `longest` along each axis, 0 being the whole; they begin at multiples of `multiple`, as
  // windows do. REQUIRES sides that are multiples of it, or not longer than `longest`.
  Tiling(const Sides& sides, const Sides& longest, int64_t multiple);

  int64_t count() const { return Positions(counts_); }
  Part Core(int64_t index) const;
  // With `halo` positions more on both sides, or up to the map's edge. REQUIRES a multiple of `multiple`.
  Part Around(const Part& core, int64_t halo) const;
  // Positions that all windows have.
  int64_t Computed(int64_t halo) const;

 private:
  Sides WindowSize(int64_t halo) const;

  Sides sides_, core_, counts_;
};

}  // namespace saccade::models
