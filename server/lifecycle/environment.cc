#include "server/lifecycle/environment.h"

#include <stdlib.h>
#include <unistd.h>

#include <string>

#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "server/lifecycle/openmp_spin.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

// Returns true if the variable was not set before.
bool SetDefault(const char* name, const char* value) {
  if (getenv(name) != nullptr) return false;
  setenv(name, value, 1);
  return true;
}

// The environment variable that passes the reason to the re-executed program, which logs it.
constexpr char kSpinningReason[] = "SACCADE_SPINNING_REASON";

void SetSpinning() {
  const auto costs = MeasureWaiting();
  setenv("GOMP_SPINCOUNT", costs ? std::to_string(SpinRounds(*costs)).c_str() : "0", 1);
  setenv(kSpinningReason, costs ? ToText(*costs).c_str() : "there is one core", 1);
}

}  // namespace

void LogSpinning() {
  const char* const reason = getenv(kSpinningReason);
  const char* const rounds = getenv("GOMP_SPINCOUNT");
  if (reason == nullptr || rounds == nullptr) return;
  Log(LogLevel::kInfo, "threads of a pass spin before they sleep",
      {{"rounds", absl::string_view(rounds)}, {"reason", absl::string_view(reason)}});
}

void SetLibraryDefaults(char** argv) {
  bool changed = SetDefault("TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD", "0");
  changed |= SetDefault("AOTI_RUNTIME_CHECK_INPUTS", "1");
  if (getenv("OMP_WAIT_POLICY") == nullptr && getenv("GOMP_SPINCOUNT") == nullptr) {
    SetSpinning();
    changed = true;
  }
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  // Does not return on success. If it fails, everything works, but slower on a busy machine.
  if (changed) execv("/proc/self/exe", argv);
}

}  // namespace saccade::server
