#include "kernels/nms/nms_cpu.h"

#include <algorithm>
#include <bit>
#include <type_traits>
#include <utility>

#include "kernels/common/arena.h"
#include "kernels/nms/nms_blocks.h"

namespace saccade::kernels {
namespace {

template <typename A>
const NmsBlockCode<A>& CodeFor([[maybe_unused]] CpuIsa isa) {
  if constexpr (std::is_same_v<A, double>) {
    return NmsDoubleCode();
  } else {
#if defined(__x86_64__)
    if (isa == CpuIsa::kAvx2) return NmsAvx2Code();
    if (isa == CpuIsa::kAvx512) return NmsAvx512Code();
#endif
    return NmsPortableCode();
  }
}

template <typename Key>
struct Entry {
  Key key;
  int32_t index;
};

// Sorts stably by ascending key. Returns the array that holds the result: `from` or `to`.
template <typename Key>
Entry<Key>* RadixSort(Entry<Key>* from, Entry<Key>* to, int64_t count) {
  constexpr int kBytes = sizeof(Key);
  int32_t places[kBytes][256] = {};
  for (int64_t i = 0; i < count; ++i) {
    for (int byte = 0; byte < kBytes; ++byte) ++places[byte][from[i].key >> (8 * byte) & 255];
  }
  for (int byte = 0; byte < kBytes; ++byte) {
    int32_t(&place)[256] = places[byte];
    if (std::find(place, place + 256, count) != place + 256) continue;  // all keys have the same byte
    int32_t next = 0;
    for (int32_t& p : place) next += std::exchange(p, next);
    for (int64_t i = 0; i < count; ++i) to[place[from[i].key >> (8 * byte) & 255]++] = from[i];
    std::swap(from, to);
  }
  return from;
}

// Maps greater scores to smaller keys, and both zeros to the same key.
uint32_t KeyOf(float score) {
  const auto bits = std::bit_cast<uint32_t>(score + 0.0f);
  return bits >> 31 != 0 ? bits : ~(bits | 1u << 31);
}
uint64_t KeyOf(double score) {
  const auto bits = std::bit_cast<uint64_t>(score + 0.0);
  return bits >> 63 != 0 ? bits : ~(bits | uint64_t{1} << 63);
}
uint64_t KeyOf(int64_t label) {
  return static_cast<uint64_t>(label) ^ uint64_t { 1 } << 63;
}

// Boxes are sorted by score and then, stably, by label, so that each class is a segment. Within a segment,
// every box is compared with the boxes kept so far. The result does not depend on the order of comparisons,
// so threads may split a class's boxes, or the classes.
template <typename A>
class NmsRun {
 public:
  using Key = decltype(KeyOf(A{}));

  NmsRun(const NmsProblem& problem, CpuIsa isa, std::byte* base) : p_(problem), code_(CodeFor<A>(isa)) {
    Arena arena(base);
    for (auto& entries : by_score_) entries = arena.Take<Entry<Key>>(p_.count);
    for (auto& entries : by_label_)
      entries = arena.Take<Entry<uint64_t>>(p_.labels == nullptr ? 0 : p_.count);
    segments_ = arena.Take<Segment>(p_.labels == nullptr ? 1 : p_.count);
    suppressed_ = arena.Take<uint8_t>(p_.count);
    // Every segment may end in padding.
    const int64_t room = p_.count + kNmsPadding * (p_.labels == nullptr ? 1 : p_.count);
    for (A** row : {&boxes_.x1, &boxes_.y1, &boxes_.x2, &boxes_.y2, &boxes_.area}) *row = arena.Take<A>(room);
    bytes_ = arena.bytes();
    limit_.threshold = RoundedDown<A>(p_.iou_threshold);
    // The margin is far above rounding errors; for tiny thresholds a relative margin would not be.
    constexpr A kRelativeMargin = std::is_same_v<A, float> ? A(1e-5) : A(1e-13);
    if (limit_.threshold >= A(1e-30)) limit_.surely_below = limit_.threshold * (1 - kRelativeMargin);
  }

  size_t bytes() const { return bytes_; }

  void Run(const Parallel& parallel) {
    const A* scores = static_cast<const A*>(p_.scores);
    for (int64_t i = 0; i < p_.count; ++i) by_score_[0][i] = {KeyOf(scores[i]), static_cast<int32_t>(i)};
    order_ = RadixSort(by_score_[0], by_score_[1], p_.count);
    const int64_t segments = Cut();
    // All threads work together on each large class; the other classes are distributed over the threads.
    constexpr int64_t kMinLargeClass = 2048;
    const int64_t grain = std::max<int64_t>(1, kMinLargeClass * segments / std::max<int64_t>(p_.count, 1));
    parallel.run(segments, grain, [&](int64_t s, int64_t end, int) {
      for (; s < end; ++s) {
        if (segments_[s].count < kMinLargeClass) Suppress(segments_[s], nullptr);
      }
    });
    for (int64_t s = 0; s < segments; ++s) {
      if (segments_[s].count >= kMinLargeClass) Suppress(segments_[s], &parallel);
    }
    Write();
  }

 private:
  struct Segment {
    int64_t first, count;  // in the order by label
    int64_t place;         // in boxes_
  };

  // Returns the rank by score of the i-th box in the order by label.
  int64_t RankOf(int64_t i) const { return p_.labels == nullptr ? i : label_order_[i].index; }

  int64_t Cut() {
    if (p_.labels == nullptr) {
      segments_[0] = {0, p_.count, 0};
      return 1;
    }
    for (int64_t rank = 0; rank < p_.count; ++rank) {
      by_label_[0][rank] = {KeyOf(p_.labels[order_[rank].index]), static_cast<int32_t>(rank)};
    }
    label_order_ = RadixSort(by_label_[0], by_label_[1], p_.count);
    int64_t segments = 0;
    int64_t place = 0;
    for (int64_t i = 0; i < p_.count; ++i) {
      if (i == 0 || label_order_[i].key != label_order_[i - 1].key) {
        if (i > 0) place += RoundUp(segments_[segments - 1].count, kNmsPadding);
        segments_[segments++] = {i, 0, place};
      }
      ++segments_[segments - 1].count;
    }
    return segments;
  }

  void Gather(const Segment& segment) const {
    const NmsBoxes<A> to = boxes_.From(segment.place);
    for (int64_t i = 0; i < segment.count; ++i) {
      const A* box = static_cast<const A*>(p_.boxes) + 4 * int64_t{order_[RankOf(segment.first + i)].index};
      to.x1[i] = box[0];
      to.y1[i] = box[1];
      to.x2[i] = box[2];
      to.y2[i] = box[3];
      to.area[i] = (box[2] - box[0]) * (box[3] - box[1]);
    }
  }

  static void Move(const NmsBoxes<A>& boxes, int64_t from, int64_t to) {
    for (A* row : {boxes.x1, boxes.y1, boxes.x2, boxes.y2, boxes.area}) row[to] = row[from];
  }

  // Works in blocks of boxes: threads compare each box with all boxes kept before the block, then one thread
  // compares the remaining boxes with each other. Kept boxes move to the front. No class keeps more boxes
  // than the result has room for.
  void Suppress(const Segment& segment, const Parallel* parallel) {
    constexpr int64_t kBlockBoxes = 512;
    constexpr int64_t kGrainPairs = 128 * 1024;
    Gather(segment);
    const NmsBoxes<A> boxes = boxes_.From(segment.place);
    const bool shared = parallel != nullptr && parallel->threads > 1;
    int64_t kept = 0;
    for (int64_t first = 0; first < segment.count; first += kBlockBoxes) {
      const int64_t last = std::min(first + kBlockBoxes, segment.count);
      const int64_t before = shared ? kept : 0;
      if (shared) {
        parallel->run(
            last - first, std::max<int64_t>(1, kGrainPairs / (before + 1)), [&](int64_t i, int64_t end, int) {
              for (i += first, end += first; i < end; ++i) {
                suppressed_[RankOf(segment.first + i)] = code_.any_over(boxes, 0, before, i, limit_) ? 1 : 0;
              }
            });
      }
      // Aligned down to where vectors begin, so some comparisons are repeated.
      const int64_t begin = before / kNmsPadding * kNmsPadding;
      for (int64_t i = first; i < last; ++i) {
        uint8_t& suppressed = suppressed_[RankOf(segment.first + i)];
        if (!shared) suppressed = 0;
        if (suppressed == 0) {
          suppressed = kept == p_.out_size || code_.any_over(boxes, begin, kept, i, limit_) ? 1 : 0;
        }
        if (suppressed == 0) Move(boxes, i, kept++);
      }
    }
  }

  void Write() const {
    int64_t count = 0;
    for (int64_t rank = 0; rank < p_.count && count < p_.out_size; ++rank) {
      if (suppressed_[rank] == 0) p_.out[count++] = order_[rank].index;
    }
    std::fill(p_.out + count, p_.out + p_.out_size, -1);
    *p_.out_count = count;
  }

  const NmsProblem& p_;
  const NmsBlockCode<A>& code_;
  NmsLimit<A> limit_;
  size_t bytes_;
  Entry<Key>*by_score_[2], *order_ = nullptr;
  Entry<uint64_t>*by_label_[2], *label_order_ = nullptr;
  Segment* segments_;
  uint8_t* suppressed_;  // by rank
  NmsBoxes<A> boxes_;
};

}  // namespace

template <typename A>
size_t NmsCpuWorkspaceBytes(const NmsProblem& problem) {
  return NmsRun<A>(problem, CpuIsa::kPortable, nullptr).bytes();
}

template <typename A>
void RunNmsCpu(const NmsProblem& problem, CpuIsa isa, const Parallel& parallel, std::byte* workspace) {
  NmsRun<A>(problem, isa, workspace).Run(parallel);
}

template size_t NmsCpuWorkspaceBytes<float>(const NmsProblem&);
template size_t NmsCpuWorkspaceBytes<double>(const NmsProblem&);
template void RunNmsCpu<float>(const NmsProblem&, CpuIsa, const Parallel&, std::byte*);
template void RunNmsCpu<double>(const NmsProblem&, CpuIsa, const Parallel&, std::byte*);

}  // namespace saccade::kernels
