#include "server/core/memory_reserve.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

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

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// Fills the address space: the reserve gives small allocations a last chance, and comes back with memory.
TEST(MemoryReserveTest, SmallAllocationsSucceedWhereNoneIsLeft) {
  const auto test = [] {
    HoldMemoryReserve();
    const rlimit small = {size_t{1} << 30, size_t{1} << 30};
    if (setrlimit(RLIMIT_AS, &small) != 0) std::_Exit(3);
    std::vector<std::unique_ptr<char[]>> filled;
    filled.reserve(4096);
    size_t size = size_t{64} << 20;
    while (size >= 4096) {
      char* const more = new (std::nothrow) char[size];
      if (more == nullptr) {
        size /= 2;
      } else if (filled.size() < filled.capacity()) {
        filled.emplace_back(more);
      }
      // A nothrow new uses the reserve as well; stop when it is gone.
      if (!RestoreMemoryReserve()) break;
    }
    if (RestoreMemoryReserve()) std::_Exit(4);
    filled.clear();
    std::_Exit(RestoreMemoryReserve() ? 0 : 5);
  };
  EXPECT_EXIT(test(), testing::ExitedWithCode(0), "");
}
#endif

}  // namespace
}  // namespace saccade::server
