#include "server/lifecycle/openmp.h"

#include <stdlib.h>
#include <unistd.h>

namespace saccade::server {

void BoundOpenMpSpinning(char** argv) {
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread exists yet.
  if (getenv("OMP_WAIT_POLICY") != nullptr || getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 1);
  // NOLINTEND(concurrency-mt-unsafe)
  // On success it does not return; without it everything works, only slower on a busy machine.
  execv("/proc/self/exe", argv);
}

}  // namespace saccade::server
