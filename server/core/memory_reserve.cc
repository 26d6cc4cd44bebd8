#include "server/core/memory_reserve.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <new>

// Defined by tcmalloc, null with other allocators: with 1, malloc and posix_memalign ask the new-handler too.
extern "C" int __attribute__((weak)) tc_set_new_mode(int mode);

namespace saccade::server {
namespace {

std::atomic<bool> is_used{false};
// Null while it is used. Changes under `changing`, so that no thread finds neither the reserve nor its
// memory.
std::atomic<void*> reserve{nullptr};
// Not an absl::Mutex, which allocates where it has to wait.
std::mutex changing;
// How often the reserve was freed; guarded by `changing`.
uint64_t uses = 0;
// The value of `uses` when this thread's allocation was last tried again.
thread_local uint64_t seen_uses = 0;

void LetMallocAsk(bool asks) {
  if (tc_set_new_mode != nullptr) tc_set_new_mode(asks ? 1 : 0);
}

// Frees the reserve. False if there is none, and no other thread freed it since this one last tried again.
bool Free() {
  const std::lock_guard lock(changing);
  if (void* const held = reserve.exchange(nullptr); held != nullptr) {
    std::free(held);
    ++uses;
  } else if (seen_uses == uses) {
    // The exception that is thrown now is allocated by malloc, which must not ask again.
    LetMallocAsk(false);
    return false;
  }
  seen_uses = uses;
  return true;
}

// The new-handler: operator new, and tcmalloc's malloc, try again if it returns. For malloc, tcmalloc catches
// the exception.
void UseReserve() {
  if (!Free()) throw std::bad_alloc();
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
  const std::lock_guard lock(changing);
  if (reserve.load() != nullptr) return true;
  // Limits like RLIMIT_AS count the address range, so the pages need not be touched. It comes from the
  // allocator, because tcmalloc returns no range to the system: one of its own could never be set aside
  // again.
  LetMallocAsk(false);
  void* const made = std::malloc(kMemoryReserveBytes);
  reserve.store(made);
  LetMallocAsk(made != nullptr);
  return made != nullptr;
}

}  // namespace saccade::server
