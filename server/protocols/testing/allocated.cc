#include "server/protocols/testing/allocated.h"

#include <malloc.h>

#include <atomic>
#include <cstdlib>
#include <new>

namespace saccade::server::testing {
namespace {

// Constant-initialised, so that they can be used before any constructor runs.
constinit std::atomic<int64_t> used = 0;
constinit std::atomic<int64_t> peak = 0;

void* Counted(void* memory) {
  if (memory == nullptr) return nullptr;
  const auto size = static_cast<int64_t>(malloc_usable_size(memory));
  const int64_t now = used.fetch_add(size) + size;
  int64_t before = peak.load();
  while (now > before && !peak.compare_exchange_weak(before, now)) {
  }
  return memory;
}

void* Allocate(size_t size) {
  void* const memory = Counted(std::malloc(size));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void* AllocateAligned(size_t size, std::align_val_t alignment) {
  const auto align = static_cast<size_t>(alignment);
  void* const memory = Counted(std::aligned_alloc(align, (size + align - 1) / align * align));
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

void Free(void* memory) {
  if (memory != nullptr) used.fetch_sub(static_cast<int64_t>(malloc_usable_size(memory)));
  std::free(memory);
}

}  // namespace

PeakMemory::PeakMemory() : before_(used.load()) { peak.store(before_); }
int64_t PeakMemory::bytes() const { return peak.load() - before_; }

}  // namespace saccade::server::testing

void* operator new(size_t size) { return saccade::server::testing::Allocate(size); }
void* operator new[](size_t size) { return saccade::server::testing::Allocate(size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return saccade::server::testing::AllocateAligned(size, alignment);
}
void* operator new[](size_t size, std::align_val_t alignment) {
  return saccade::server::testing::AllocateAligned(size, alignment);
}
void* operator new(size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return saccade::server::testing::Counted(std::malloc(size));
}
void* operator new[](size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return saccade::server::testing::Counted(std::malloc(size));
}
void operator delete(void* memory) noexcept { saccade::server::testing::Free(memory); }
void operator delete[](void* memory) noexcept { saccade::server::testing::Free(memory); }
void operator delete(void* memory, size_t /*size*/) noexcept { saccade::server::testing::Free(memory); }
void operator delete[](void* memory, size_t /*size*/) noexcept { saccade::server::testing::Free(memory); }
void operator delete(void* memory, std::align_val_t /*alignment*/) noexcept {
  saccade::server::testing::Free(memory);
}
void operator delete[](void* memory, std::align_val_t /*alignment*/) noexcept {
  saccade::server::testing::Free(memory);
}
void operator delete(void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  saccade::server::testing::Free(memory);
}
void operator delete[](void* memory, size_t /*size*/, std::align_val_t /*alignment*/) noexcept {
  saccade::server::testing::Free(memory);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  saccade::server::testing::Free(memory);
}
void operator delete[](void* memory, const std::nothrow_t& /*tag*/) noexcept {
  saccade::server::testing::Free(memory);
}
