// Threads for the CPU kernels, handed in from above so that the kernels themselves know no LibTorch and the
// sanitizers can watch them under plain threads.
#pragma once

#include <cstdint>
#include <functional>

namespace saccade::kernels {

struct Parallel {
  // Work on tasks [begin, end), as thread number `thread` of at most `threads`.
  using Task = std::function<void(int64_t begin, int64_t end, int thread)>;

  // An upper bound of the thread numbers that `run` hands out; sizes the scratch memory.
  int threads = 1;
  // Splits `tasks` into consecutive ranges, not below `grain` each where more than one thread works, and
  // returns when all are done.
  std::function<void(int64_t tasks, int64_t grain, const Task& task)> run;
};

// LibTorch's intra-op pool (at::set_num_threads governs it).
Parallel TorchParallel();

}  // namespace saccade::kernels
