// The models and devices of one measurement.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "server/batching/batch_task.h"
#include "server/batching/scheduler.h"

namespace saccade::server::bench {

struct World {
  int models = 1;
  int devices = 1;
  // The first so many models get requests.
  int busy = 1;

  std::string Name() const {
    return absl::StrCat(models, models == 1 ? " model, " : " models, ", busy, " busy, ", devices,
                        devices == 1 ? " device" : " devices");
  }

  // Each model has one instance on every device.
  Devices AllDevices() const {
    Devices all;
    for (int device = 0; device < devices; ++device) all.push_back(device);
    return all;
  }
};

// What a pass over `size` items takes.
inline absl::Duration PassTime(int64_t size) { return absl::Microseconds(200 + 100 * size); }

// CPU time of the process so far.
inline absl::Duration CpuTime() { return absl::Seconds(static_cast<double>(std::clock()) / CLOCKS_PER_SEC); }

// Ends the program if a measurement is not of what it says.
inline void Require(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "saccade_bench_core: " << what << std::endl;
  std::exit(1);
}

// Counts what is rejected; the measurement is void if there is anything.
class Request final : public BatchTask {
 public:
  Request(Traits traits, std::atomic<int64_t>* rejected)
      : BatchTask(std::move(traits)), rejected_(rejected) {}
  void Reject(absl::Status /*why*/) override { ++*rejected_; }

 private:
  std::atomic<int64_t>* const rejected_;
};

}  // namespace saccade::server::bench
