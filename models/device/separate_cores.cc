#include "models/device/separate_cores.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/common/parallel.h"

namespace saccade::models {
namespace {

bool Has(const std::vector<int>& cores, int core) {
  return std::find(cores.begin(), cores.end(), core) != cores.end();
}

bool MayUse(const cpu_set_t& allowed, int core) {
  return core < CPU_SETSIZE && CPU_ISSET(static_cast<size_t>(core), &allowed);
}

// Moves the calling thread to `own` if it is elsewhere, and keeps it off the other cores.
void KeepTo(int own, const std::vector<int>& cores, cpu_set_t allowed) {
  for (const int core : cores) {
    if (core != own) CPU_CLR(static_cast<size_t>(core), &allowed);
  }
  sched_setaffinity(0, sizeof(allowed), &allowed);
}

}  // namespace

std::vector<int> AssignCores(const std::vector<int>& cores, const cpu_set_t& allowed) {
  std::vector<int> apart;
  for (const int core : cores) {
    int chosen = core;
    for (int other = 0; Has(apart, chosen) && other < CPU_SETSIZE; ++other) {
      if (MayUse(allowed, other) && !Has(cores, other) && !Has(apart, other)) chosen = other;
    }
    apart.push_back(chosen);
  }
  return apart;
}

SeparateCores::SeparateCores() {
  const kernels::Parallel parallel = kernels::TorchParallel();
  if (parallel.threads < 2 || sched_getaffinity(0, sizeof(allowed_), &allowed_) != 0) return;
  if (CPU_COUNT(&allowed_) < parallel.threads) return;
  std::vector<int> cores(static_cast<size_t>(parallel.threads), -1);
  const auto on_each = [&](const kernels::Parallel::Task& task) { parallel.run(parallel.threads, 1, task); };
  on_each([&](int64_t, int64_t, int thread) { cores[static_cast<size_t>(thread)] = sched_getcpu(); });
  // A thread that took no part, or is on a core that was just forbidden.
  if (std::any_of(cores.begin(), cores.end(), [&](int core) { return core < 0 || !MayUse(allowed_, core); }))
    return;
  const std::vector<int> apart = AssignCores(cores, allowed_);
  on_each([&](int64_t, int64_t, int thread) { KeepTo(apart[static_cast<size_t>(thread)], apart, allowed_); });
  apart_ = true;
}

SeparateCores::~SeparateCores() {
  if (!apart_) return;
  const kernels::Parallel parallel = kernels::TorchParallel();
  parallel.run(parallel.threads, 1,
               [&](int64_t, int64_t, int) { sched_setaffinity(0, sizeof(allowed_), &allowed_); });
}

}  // namespace saccade::models
