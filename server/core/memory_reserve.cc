#include "server/core/memory_reserve.h"

#include <sys/mman.h>

#include <atomic>
#include <new>

namespace saccade::server {
namespace {

std::atomic<bool> is_used{false};
// Null while it is used.
std::atomic<void*> reserve{nullptr};

// The address range is what limits like RLIMIT_AS count, so the pages need not be touched.
void* Map() {
  void* const made =
      mmap(nullptr, kMemoryReserveBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return made == MAP_FAILED ? nullptr : made;
}

// The new-handler: operator new tries again if it returns.
void UseReserve() {
  void* const held = reserve.exchange(nullptr);
  if (held == nullptr) throw std::bad_alloc();
  munmap(held, kMemoryReserveBytes);
}

}  // namespace

void HoldMemoryReserve() {
  is_used.store(true);
  RestoreMemoryReserve();
  std::set_new_handler(UseReserve);
}

bool RestoreMemoryReserve() {
  if (!is_used.load(std::memory_order_relaxed) || reserve.load(std::memory_order_relaxed) != nullptr)
    return true;
  void* const made = Map();
  if (made == nullptr) return false;
  void* none = nullptr;
  // Another thread may have been first.
  if (!reserve.compare_exchange_strong(none, made)) munmap(made, kMemoryReserveBytes);
  return true;
}

}  // namespace saccade::server
