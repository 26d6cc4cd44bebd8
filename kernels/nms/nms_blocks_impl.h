// Included only by nms_portable.cc, nms_avx2.cc and nms_avx512.cc, each compiled with its own flags and
// without fused multiply-add, which would round differently.
#pragma once

#include "kernels/common/vec.h"
#include "kernels/nms/nms_blocks.h"

namespace saccade::kernels::SACCADE_ISA {

template <typename A>
using Mask = decltype(Vec<A>{} > Vec<A>{});

template <typename A>
inline bool Any(Mask<A> mask) {
  uint64_t words[SACCADE_VECTOR_BYTES / 8];
  __builtin_memcpy(words, &mask, sizeof(words));
  uint64_t any = 0;
  for (const uint64_t word : words) any |= word;
  return any != 0;
}

// One box, for its intersection and union with vectors of other boxes.
template <typename A>
struct Pairs {
  Pairs(const NmsBoxes<A>& of, int64_t i)
      : x1(Broadcast(of.x1[i])),
        y1(Broadcast(of.y1[i])),
        x2(Broadcast(of.x2[i])),
        y2(Broadcast(of.y2[i])),
        area(Broadcast(of.area[i])) {}

  void With(const NmsBoxes<A>& boxes, int64_t i, Vec<A>* intersection, Vec<A>* both) const {
    const Vec<A> left = Load(boxes.x1 + i), top = Load(boxes.y1 + i);
    const Vec<A> right = Load(boxes.x2 + i), bottom = Load(boxes.y2 + i);
    const Vec<A> width = (right < x2 ? right : x2) - (left > x1 ? left : x1);
    const Vec<A> height = (bottom < y2 ? bottom : y2) - (top > y1 ? top : y1);
    *intersection = (width > 0 ? width : Vec<A>{}) * (height > 0 ? height : Vec<A>{});
    *both = Load(boxes.area + i) + area - *intersection;
  }

  Vec<A> x1, y1, x2, y2, area;
};

// Checks the vector of boxes at i exactly; only the first `count` lanes are used.
template <typename A>
inline bool AnyInVector(const Pairs<A>& pairs, const NmsBoxes<A>& boxes, int64_t i, int64_t count,
                        A threshold) {
  Vec<A> intersection, both;
  pairs.With(boxes, i, &intersection, &both);
  const Mask<A> over = intersection / both > threshold;
  bool any = false;
  for (int lane = 0; lane < kLanes<A> && lane < count; ++lane) any |= over[lane] != 0;
  return any;
}

// Checks kVectors vectors of boxes from `begin`; the last one may extend past `end`.
template <int kVectors, typename A>
inline bool AnyInVectors(const Pairs<A>& pairs, const NmsBoxes<A>& boxes, int64_t begin, int64_t end,
                         const NmsLimit<A>& limit) {
  Mask<A> perhaps{};
  for (int v = 0; v < kVectors; ++v) {
    Vec<A> intersection, both;
    pairs.With(boxes, begin + v * kLanes<A>, &intersection, &both);
    perhaps |= ~(intersection < both * limit.surely_below);
  }
  if (!Any<A>(perhaps)) return false;
  for (int v = 0; v < kVectors; ++v) {
    const int64_t at = begin + v * kLanes<A>;
    if (AnyInVector(pairs, boxes, at, end - at, limit.threshold)) return true;
  }
  return false;
}

template <typename A>
bool AnyOver(const NmsBoxes<A>& boxes, int64_t begin, int64_t end, int64_t index, const NmsLimit<A>& limit) {
  constexpr int kVectors = 4;
  const Pairs<A> pairs(boxes, index);
  int64_t i = begin;
  for (; i + kVectors * kLanes<A> <= end; i += kVectors * kLanes<A>) {
    if (AnyInVectors<kVectors>(pairs, boxes, i, end, limit)) return true;
  }
  for (; i < end; i += kLanes<A>) {
    if (AnyInVectors<1>(pairs, boxes, i, end, limit)) return true;
  }
  return false;
}

template <typename A>
inline constexpr NmsBlockCode<A> kNmsCode = {AnyOver<A>};

}  // namespace saccade::kernels::SACCADE_ISA
