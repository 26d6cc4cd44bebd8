#include "server/lifecycle/openmp.h"

#include <stdlib.h>
#include <unistd.h>

namespace saccade::server {

void BoundOpenMpSpinning(char** argv) {
  if (getenv("OMP_WAIT_POLICY") != nullptr || getenv("GOMP_SPINCOUNT") != nullptr) return;
  setenv("GOMP_SPINCOUNT", "1000", 1);
  // On success it does not return; without it everything works, only slower on a busy machine.
  execv("/proc/self/exe", argv);
}

}  // namespace saccade::server
