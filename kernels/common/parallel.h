// Threads of the CPU kernels, passed in by the caller so that the kernels do not depend on LibTorch and the
// sanitizers can run them on plain threads.
#pragma once

#include <cstdint>
#include <functional>

namespace saccade::kernels {

struct Parallel {
  // Works on tasks [begin, end). `thread` is below `threads`; no two concurrent calls share it.
  using Task = std::function<void(int64_t begin, int64_t end, int thread)>;

  // Upper bound of the thread numbers that `run` hands out; sizes the scratch memory.
  int threads = 1;
  // Splits [0, tasks) into consecutive ranges, normally of at least `grain` tasks if there is more than one,
  // runs `task` on them and returns when all are done.
  std::function<void(int64_t tasks, int64_t grain, const Task& task)> run;
};

// Returns LibTorch's intra-op pool (sized by at::set_num_threads).
Parallel TorchParallel();

}  // namespace saccade::kernels
