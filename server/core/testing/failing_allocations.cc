#include "server/core/testing/failing_allocations.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

// ThreadSanitizer brings operators of its own.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SACCADE_KEEPS_OPERATORS
#endif
#endif

#ifdef SACCADE_KEEPS_OPERATORS

namespace saccade::server::testing {

bool FailAllocationsFrom(size_t /*size*/) { return false; }
bool FailAllocation(int64_t /*number*/) { return false; }

}  // namespace saccade::server::testing

#else

namespace saccade::server::testing {
namespace {

// Constant-initialised, so that it can be used before any constructor runs.
constinit std::atomic<size_t> failing_size = SIZE_MAX;
// Number of allocations before the one that fails; negative if none does.
constinit std::atomic<int64_t> before_failing = -1;

}  // namespace

bool FailAllocationsFrom(size_t size) {
  failing_size = size;
  return true;
}

bool FailAllocation(int64_t number) {
  before_failing = number;
  return true;
}

}  // namespace saccade::server::testing

// These replace the operators of the whole program.
void* operator new(size_t size) {
  if (size >= saccade::server::testing::failing_size) throw std::bad_alloc();
  if (saccade::server::testing::before_failing >= 0) {
    if (saccade::server::testing::before_failing-- == 0) throw std::bad_alloc();
  }
  void* const memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { std::free(memory); }

#endif
