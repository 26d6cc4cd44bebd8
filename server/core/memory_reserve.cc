#include "server/core/memory_reserve.h"

#include <atomic>
#include <cstdlib>
#include <new>

// Defined by tcmalloc, null with other allocators: with 1, malloc and posix_memalign ask the new-handler too.
extern "C" int __attribute__((weak)) tc_set_new_mode(int mode);

namespace saccade::server {
namespace {

std::atomic<bool> is_used{false};
// Null while it is used.
std::atomic<void*> reserve{nullptr};

// Limits like RLIMIT_AS count the address range, so the pages need not be touched. It comes from the
// allocator, because tcmalloc returns no range to the system: a range of its own could never be set aside
// again.
void* Take() { return std::malloc(kMemoryReserveBytes); }

// The new-handler: operator new, and tcmalloc's malloc, try again if it returns.
void UseReserve() {
  void* const held = reserve.exchange(nullptr);
  if (held == nullptr) throw std::bad_alloc();
  std::free(held);
}

}  // namespace

void HoldMemoryReserve() {
  is_used.store(true);
  RestoreMemoryReserve();
  std::set_new_handler(UseReserve);
  // tcmalloc returns null where the handler throws.
  if (tc_set_new_mode != nullptr) tc_set_new_mode(1);
}

bool RestoreMemoryReserve() {
  if (!is_used.load(std::memory_order_relaxed) || reserve.load(std::memory_order_relaxed) != nullptr)
    return true;
  void* const made = Take();
  if (made == nullptr) return false;
  void* none = nullptr;
  // Another thread may have been first.
  if (!reserve.compare_exchange_strong(none, made)) std::free(made);
  return true;
}

}  // namespace saccade::server
