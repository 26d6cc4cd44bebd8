#include "server/protocols/testing/counted_copies.h"

#include <atomic>

namespace saccade::server::testing {
namespace {

// Constant-initialised, so that it can be used before any constructor runs.
constinit std::atomic<size_t> copied = 0;

void Count(size_t size) {
  if (size >= kCountedFrom) copied.fetch_add(size, std::memory_order_relaxed);
}

// Volatile, so that the compiler does not replace the loop by a call of memcpy.
void CopyForwards(volatile char* to, const char* from, size_t size) {
  for (size_t i = 0; i < size; ++i) to[i] = from[i];
}

void CopyBackwards(volatile char* to, const char* from, size_t size) {
  for (size_t i = size; i > 0; --i) to[i - 1] = from[i - 1];
}

}  // namespace

size_t CopiedBytes() { return copied.load(); }

extern "C" void* memmove(void* to, const void* from, size_t size) {
  Count(size);
  auto* const target = static_cast<char*>(to);
  const auto* const source = static_cast<const char*>(from);
  if (target < source) {
    CopyForwards(target, source, size);
  } else {
    CopyBackwards(target, source, size);
  }
  return to;
}

extern "C" void* memcpy(void* to, const void* from, size_t size) { return memmove(to, from, size); }

}  // namespace saccade::server::testing
