#include "models/device/use_threads.h"

#include <ATen/Parallel.h>

#include "kernels/common/parallel.h"

namespace saccade::models {

void UseThreads(int threads) {
  // LibTorch's number alone does not tell whether the flags below were met on this thread.
  thread_local bool met = false;
  if (met && at::get_num_threads() == threads) return;
  met = true;
  // The first use of threads in each thread resets its thread count to the one that any thread set last.
  // LibTorch, our operators and this program each have a flag of their own for that first use, and a pass
  // uses all three. Trigger all three here, as a reset during a pass would undo the setting below.
  at::get_num_threads();
  kernels::TorchParallel().run(1, 1, [](int64_t, int64_t, int) {});
  at::parallel_for(0, 1, 1, [](int64_t, int64_t) {});
  at::set_num_threads(threads);
}

int UsedThreads() { return at::get_num_threads(); }

}  // namespace saccade::models
