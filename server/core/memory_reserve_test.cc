#include "server/core/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>
#include <vector>

extern "C" int __attribute__((weak)) tc_set_new_mode(int mode);

namespace saccade::server {
namespace {

TEST(MemoryReserveTest, WithoutAReserveThereIsNothingToRestore) {
  EXPECT_EXIT(std::_Exit(RestoreMemoryReserve() ? 0 : 1), testing::ExitedWithCode(0), "");
}

TEST(MemoryReserveTest, TheHandlerUsesItOnceAndItIsRestored) {
  const auto test = [] {
    HoldMemoryReserve();
    const std::new_handler handler = std::get_new_handler();
    handler();
    try {
      handler();
    } catch (const std::bad_alloc&) {
      if (!RestoreMemoryReserve()) std::_Exit(2);
      handler();
      std::_Exit(0);
    }
    std::_Exit(1);
  };
  EXPECT_EXIT(test(), testing::ExitedWithCode(0), "");
}

// Threads whose allocations fail together all try again after one of them freed the reserve.
TEST(MemoryReserveTest, ThreadsThatFailTogetherUseItTogether) {
  const auto test = [] {
    HoldMemoryReserve();
    const std::new_handler handler = std::get_new_handler();
    std::atomic<int> refused = 0;
    std::vector<std::thread> threads;
    threads.reserve(8);
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        try {
          handler();
        } catch (const std::bad_alloc&) {
          ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::_Exit(refused);
  };
  for (int i = 0; i < 20; ++i) EXPECT_EXIT(test(), testing::ExitedWithCode(0), "");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Takes memory by `allocate`, which returns null when there is none, until the reserve is used; ends the
// process with 0 if the reserve comes back once the memory is free.
template <typename Allocate, typename Free>
[[noreturn]] void FillTheAddressSpace(const Allocate& allocate, const Free& free) {
  HoldMemoryReserve();
  const rlimit small = {size_t{1} << 30, size_t{1} << 30};
  if (setrlimit(RLIMIT_AS, &small) != 0) std::_Exit(3);
  std::vector<void*> filled;
  filled.reserve(4096);
  size_t size = size_t{64} << 20;
  while (size >= 4096) {
    void* const more = allocate(size);
    if (more == nullptr) {
      size /= 2;
    } else if (filled.size() < filled.capacity()) {
      filled.push_back(more);
    }
    // Stop when the reserve is gone.
    if (!RestoreMemoryReserve()) break;
  }
  if (RestoreMemoryReserve()) std::_Exit(4);
  for (void* const memory : filled) free(memory);
  std::_Exit(RestoreMemoryReserve() ? 0 : 5);
}

// The reserve gives small allocations a last chance, and comes back with memory. A nothrow new uses it too.
TEST(MemoryReserveTest, SmallAllocationsSucceedWhereNoneIsLeft) {
  EXPECT_EXIT(FillTheAddressSpace([](size_t size) { return ::operator new(size, std::nothrow); },
                                  [](void* memory) { ::operator delete(memory); }),
              testing::ExitedWithCode(0), "");
}

TEST(MemoryReserveTest, TcmallocsMallocUsesIt) {
  if (tc_set_new_mode == nullptr) GTEST_SKIP() << "this build has no tcmalloc";
  EXPECT_EXIT(FillTheAddressSpace([](size_t size) { return std::malloc(size); }, std::free),
              testing::ExitedWithCode(0), "");
  const auto aligned = [](size_t size) {
    void* memory = nullptr;
    return posix_memalign(&memory, 64, size) == 0 ? memory : nullptr;
  };
  EXPECT_EXIT(FillTheAddressSpace(aligned, std::free), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace saccade::server
