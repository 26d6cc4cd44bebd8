#include "server/lifecycle/environment.h"

#include <stdlib.h>
#include <unistd.h>

#include "absl/synchronization/mutex.h"

namespace saccade::server {
namespace {

// Returns true if the variable was not set before.
bool SetDefault(const char* name, const char* value) {
  if (getenv(name) != nullptr) return false;
  setenv(name, value, 1);
  return true;
}

}  // namespace

void SetLibraryDefaults(char** argv) {
  bool changed = SetDefault("TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "0");
  changed |= SetDefault("OPENCV_FFMPEG_LOGLEVEL", "-8");
  changed |= SetDefault("AOTI_RUNTIME_CHECK_INPUTS", "1");
  if (getenv("OMP_WAIT_POLICY") == nullptr) changed |= SetDefault("GOMP_SPINCOUNT", "1000");
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Does not return on success. If it fails, everything works, but slower on a busy machine.
  if (changed) execv("/proc/self/exe", argv);
}

}  // namespace saccade::server
