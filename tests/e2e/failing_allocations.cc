// An LD_PRELOAD library that lets the daemon run out of memory at a chosen allocation. The file
// FAILING_ALLOCATIONS holds a struct Control, with which a test starts and ends the shortage. Allocations are
// counted while `is_counting` is set. From number `fails_at` on they fail, except in what was freed since: as
// an allocator behaves that gets no more memory from the system. The new-handler is asked by operator new,
// and by malloc if tcmalloc's malloc would ask it. The stack of the first failure is written to
// FAILING_ALLOCATIONS.stack.
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

extern "C" int __attribute__((weak)) tc_query_new_mode();

namespace {

struct Control {
  std::atomic<int64_t> is_counting;
  std::atomic<int64_t> counted;
  std::atomic<int64_t> fails_at;
  // Allocations that found no memory.
  std::atomic<int64_t> failed;
  // Those of them after the new-handler was asked, which are the caller's to handle.
  std::atomic<int64_t> refused;
  // Bytes freed since the first failure, less those allocated.
  std::atomic<int64_t> free_bytes;
};

Control* control = nullptr;
int stack_file = -1;

// Not for the decode workers, which inherit the daemon's environment.
__attribute__((constructor)) void Open() {
  if (std::strcmp(program_invocation_short_name, "saccaded") != 0) return;
  const char* const path = std::getenv("FAILING_ALLOCATIONS");
  const int file = path == nullptr ? -1 : open(path, O_RDWR | O_CLOEXEC);
  void* const mapped =
      file < 0 ? MAP_FAILED : mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (mapped == MAP_FAILED) abort();
  close(file);
  char stack[4096];
  std::strncpy(stack, path, sizeof(stack) - 8);
  std::strcat(stack, ".stack");
  stack_file = open(stack, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  // The first call loads a library, which allocates.
  void* frames[1];
  backtrace(frames, 1);
  control = static_cast<Control*>(mapped);
}

void WriteStack() {
  void* frames[64];
  const int count = backtrace(frames, 64);
  static_cast<void>(!ftruncate(stack_file, 0));
  lseek(stack_file, 0, SEEK_SET);
  backtrace_symbols_fd(frames, count, stack_file);
}

// True while operator new or delete of the C++ library runs, which may call malloc and free in turn.
__attribute__((tls_model("initial-exec"))) thread_local bool is_inside = false;
struct Inside {
  Inside() { is_inside = true; }
  ~Inside() { is_inside = false; }
};

bool IsShort() {
  return control != nullptr && control->is_counting.load() != 0 &&
         control->counted.load() >= control->fails_at.load();
}

// Whether memory is left for `size` bytes, which are then taken.
bool TakeFree(int64_t size) {
  int64_t left = control->free_bytes.load();
  while (left >= size) {
    if (control->free_bytes.compare_exchange_weak(left, left - size)) return true;
  }
  return false;
}

// True if an allocation of `size` bytes may go on. May throw std::bad_alloc, if `asks` for the new-handler.
bool HasRoom(size_t size, bool asks) {
  if (is_inside || control == nullptr || control->is_counting.load() == 0) return true;
  if (control->counted.fetch_add(1) + 1 < control->fails_at.load()) return true;
  if (TakeFree(static_cast<int64_t>(size))) return true;
  if (control->failed.fetch_add(1) == 0) WriteStack();
  while (asks) {
    // The shortage may have ended meanwhile.
    if (!IsShort()) return true;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) break;
    try {
      handler();
    } catch (const std::bad_alloc&) {
      break;
    }
    if (TakeFree(static_cast<int64_t>(size))) return true;
  }
  control->refused.fetch_add(1);
  errno = ENOMEM;
  return false;
}

bool MallocHasRoom(size_t size) {
  return HasRoom(size, tc_query_new_mode != nullptr && tc_query_new_mode() != 0);
}

void NoteFreed(void* memory) {
  if (memory != nullptr && !is_inside && IsShort())
    control->free_bytes.fetch_add(static_cast<int64_t>(malloc_usable_size(memory)));
}

template <typename Function>
Function* Next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace

#define NEXT(name) static auto* const next = Next<decltype(name)>(#name)

extern "C" {

void* malloc(size_t size) {
  NEXT(malloc);
  return MallocHasRoom(size) ? next(size) : nullptr;
}
void* calloc(size_t count, size_t size) {
  NEXT(calloc);
  return MallocHasRoom(count * size) ? next(count, size) : nullptr;
}
void* realloc(void* memory, size_t size) {
  NEXT(realloc);
  if (size > 0 && !MallocHasRoom(size)) return nullptr;
  NoteFreed(memory);
  return next(memory, size);
}
int posix_memalign(void** memory, size_t alignment, size_t size) {
  NEXT(posix_memalign);
  return MallocHasRoom(size) ? next(memory, alignment, size) : ENOMEM;
}
void* aligned_alloc(size_t alignment, size_t size) {
  NEXT(aligned_alloc);
  return MallocHasRoom(size) ? next(alignment, size) : nullptr;
}
void free(void* memory) {
  NEXT(free);
  NoteFreed(memory);
  next(memory);
}
}

void* operator new(size_t size) {
  static auto* const next = Next<void*(size_t)>("_Znwm");
  if (!HasRoom(size, true)) throw std::bad_alloc();
  const Inside inside;
  return next(size);
}
void* operator new[](size_t size) {
  static auto* const next = Next<void*(size_t)>("_Znam");
  if (!HasRoom(size, true)) throw std::bad_alloc();
  const Inside inside;
  return next(size);
}
void* operator new(size_t size, const std::nothrow_t& tag) noexcept {
  static auto* const next = Next<void*(size_t, const std::nothrow_t&)>("_ZnwmRKSt9nothrow_t");
  if (!HasRoom(size, true)) return nullptr;
  const Inside inside;
  return next(size, tag);
}
void* operator new[](size_t size, const std::nothrow_t& tag) noexcept {
  static auto* const next = Next<void*(size_t, const std::nothrow_t&)>("_ZnamRKSt9nothrow_t");
  if (!HasRoom(size, true)) return nullptr;
  const Inside inside;
  return next(size, tag);
}
void* operator new(size_t size, std::align_val_t alignment) {
  static auto* const next = Next<void*(size_t, std::align_val_t)>("_ZnwmSt11align_val_t");
  if (!HasRoom(size, true)) throw std::bad_alloc();
  const Inside inside;
  return next(size, alignment);
}

void operator delete(void* memory) noexcept {
  static auto* const next = Next<void(void*)>("_ZdlPv");
  NoteFreed(memory);
  const Inside inside;
  next(memory);
}
void operator delete[](void* memory) noexcept {
  static auto* const next = Next<void(void*)>("_ZdaPv");
  NoteFreed(memory);
  const Inside inside;
  next(memory);
}
void operator delete(void* memory, size_t size) noexcept {
  static auto* const next = Next<void(void*, size_t)>("_ZdlPvm");
  NoteFreed(memory);
  const Inside inside;
  next(memory, size);
}
void operator delete[](void* memory, size_t size) noexcept {
  static auto* const next = Next<void(void*, size_t)>("_ZdaPvm");
  NoteFreed(memory);
  const Inside inside;
  next(memory, size);
}
