#include "server/catalog/cores.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {

std::vector<int> ProcessorsOfCores(const std::vector<PhysicalCore>& cores, int first, int count) {
  const auto size = static_cast<int>(cores.size());
  std::vector<int> processors;
  for (int i = 0; i < std::min(count, size); ++i) {
    const PhysicalCore& core = cores[static_cast<size_t>((first + i) % size)];
    processors.insert(processors.end(), core.begin(), core.end());
  }
  return processors;
}

absl::Status KeepToProcessors(const std::vector<int>& processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(
      error, absl::StrCat("cannot bind the thread to processors ", absl::StrJoin(processors, ",")));
}

}  // namespace saccade::server
