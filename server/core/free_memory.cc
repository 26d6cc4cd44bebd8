#include "server/core/free_memory.h"

#include <malloc.h>

// gperftools' own, not declared where its headers are not installed; null where it is not linked.
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
