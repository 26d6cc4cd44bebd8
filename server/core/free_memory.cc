#include "server/core/free_memory.h"

#include <malloc.h>

#include <cstddef>

// Provided by gperftools. Declared here because its headers may not be installed; null if it is not linked.
extern "C" __attribute__((weak)) void MallocExtension_ReleaseFreeMemory();
extern "C" __attribute__((weak)) int MallocExtension_GetNumericProperty(const char* property, size_t* value);

namespace saccade::server {

void ReturnFreeMemory() {
  if (MallocExtension_ReleaseFreeMemory != nullptr) {
    MallocExtension_ReleaseFreeMemory();
  } else {
    malloc_trim(0);
  }
}

int64_t AllocatedBytes() {
  size_t bytes = 0;
  if (MallocExtension_GetNumericProperty != nullptr &&
      MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &bytes) != 0)
    return static_cast<int64_t>(bytes);
  const struct mallinfo2 info = mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

}  // namespace saccade::server
