// The only file compiled with OpenMP: without it the template at::parallel_for runs serially.
#include "kernels/common/parallel.h"

#include <ATen/Parallel.h>

namespace saccade::kernels {

Parallel TorchParallel() {
  return {.threads = at::get_num_threads(),
          .run = [](int64_t tasks, int64_t grain, const Parallel::Task& task) {
            at::parallel_for(0, tasks, grain,
                             [&](int64_t begin, int64_t end) { task(begin, end, at::get_thread_num()); });
          }};
}

}  // namespace saccade::kernels
