#include "models/use_threads.h"

#include <ATen/Parallel.h>

#include "kernels/common/parallel.h"

namespace saccade::models {

void UseThreads(int threads) {
  // Where a thread first asks LibTorch for threads, it is set to the number that any thread asked for last.
  // LibTorch, the operators and this program each have a flag of their own for that, a pass meets all three,
  // and one that is met in the middle of a pass would undo what is set here.
  at::get_num_threads();
  kernels::TorchParallel().run(1, 1, [](int64_t, int64_t, int) {});
  at::parallel_for(0, 1, 1, [](int64_t, int64_t) {});
  at::set_num_threads(threads);
}

}  // namespace saccade::models
