#include "server/catalog/cores.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace saccade::server {

std::vector<int> CoresFrom(const std::vector<int>& allowed, int first, int count) {
  const auto size = static_cast<int>(allowed.size());
  std::vector<int> cores;
  for (int i = 0; i < std::min(count, size); ++i) cores.push_back(allowed[(first + i) % size]);
  return cores;
}

absl::Status KeepToCores(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  const int error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
  if (error == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(error,
                             absl::StrCat("cannot bind the thread to cores ", absl::StrJoin(cores, ",")));
}

}  // namespace saccade::server
