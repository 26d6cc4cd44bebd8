// How the rows of an inverted residual's maps are split among threads, and in which order their layers are
// computed: a few rows of outputs at a time, with the filtered rows that they need in a ring.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>

#include "kernels/common/arena.h"
#include "kernels/common/parallel.h"

namespace saccade::kernels {

// The sizes of one call.
struct InvertedResidualRowSizes {
  int64_t batch = 0;
  int64_t height = 0;
  int64_t out_height = 0;
  int64_t stride = 1;
  int64_t ring_row_bytes = 0;  // of a row that is filtered
  int64_t projected_row_bytes = 0;
};

class InvertedResidualRows {
 public:
  InvertedResidualRows(const InvertedResidualRowSizes& sizes, int threads)
      : sizes_(sizes),
        bands_(std::min<int64_t>(threads / std::gcd(std::max<int64_t>(sizes.batch, 1), int64_t{threads}),
                                 sizes.out_height)),
        step_(Step()),
        slots_(Slots(step_)) {}

  // How many rows of outputs are made at a time.
  int64_t step() const { return step_; }
  // Rows of the ring.
  int64_t slots() const { return slots_; }

  // Calls, for each band of rows of a sample:
  //   code.Start(thread)
  //   code.Fill(sample, begin, end, thread)      makes these rows of what is filtered
  //   code.Filter(sample, y, at, thread)         filters row y of the outputs into the projected row `at`
  //   code.Project(sample, begin, end, thread)   makes these rows of the outputs of what was filtered
  template <typename Code>
  void Run(const Parallel& parallel, Code& code) const {
    parallel.run(sizes_.batch * bands_, 1, [&](int64_t i, int64_t end, int thread) {
      for (; i < end; ++i) {
        const int64_t band = i % bands_;
        Band(i / bands_, sizes_.out_height * band / bands_, sizes_.out_height * (band + 1) / bands_, thread,
             code);
      }
    });
  }

 private:
  // Bytes of filtered and projected rows of one thread, chosen so that they and the weights stay in the L2
  // cache.
  static constexpr int64_t kCacheBytes = 256 * 1024;

  int64_t Slots(int64_t step) const { return (step - 1) * sizes_.stride + 3; }

  int64_t Step() const {
    const int64_t most = DivideUp(sizes_.out_height, bands_);
    int64_t step = 1;
    while (step < most &&
           Slots(step + 1) * sizes_.ring_row_bytes + (step + 1) * sizes_.projected_row_bytes <= kCacheBytes) {
      ++step;
    }
    return DivideUp(most, DivideUp(most, step));
  }

  template <typename Code>
  void Band(int64_t sample, int64_t begin, int64_t end, int thread, Code& code) const {
    code.Start(thread);
    int64_t next = std::max<int64_t>(begin * sizes_.stride - 1, 0);
    for (int64_t row = begin; row < end; row += step_) {
      const int64_t last = std::min(row + step_, end);
      const int64_t needed = std::min((last - 1) * sizes_.stride + 2, sizes_.height);
      code.Fill(sample, next, needed, thread);
      next = std::max(next, needed);
      for (int64_t y = row; y < last; ++y) code.Filter(sample, y, y - row, thread);
      code.Project(sample, row, last, thread);
    }
  }

  const InvertedResidualRowSizes sizes_;
  const int64_t bands_;  // of rows, into which a sample is split
  const int64_t step_;
  const int64_t slots_;
};

}  // namespace saccade::kernels
