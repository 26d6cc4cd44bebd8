#include "server/core/free_memory.h"

#include <malloc.h>

// Provided by gperftools. Declared here because its headers may not be installed; null if it is not linked.
extern "C" __attribute__((weak)) void MallocExtension_ReleaseFreeMemory();

namespace saccade::server {

void ReturnFreeMemory() {
  if (MallocExtension_ReleaseFreeMemory != nullptr) {
    MallocExtension_ReleaseFreeMemory();
  } else {
    malloc_trim(0);
  }
}

}  // namespace saccade::server
