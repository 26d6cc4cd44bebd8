// The oracle of memory and time of harnesses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "tests/fuzz/harness.h"

// Defined by the sanitizers' runtime, which libFuzzer needs; null in other builds.
extern "C" {
int __attribute__((weak)) __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void*,
                                                                                      size_t),
                                                                    void (*on_free)(const volatile void*));
size_t __attribute__((weak)) __sanitizer_get_allocated_size(const volatile void* memory);
}

namespace saccade::fuzz {

// Checks, when it is destroyed, that handling one input of `bytes` took no more memory at once than 64 times
// its size and 16 MiB, and no more processor time than 100 ms for each megabyte begun, both of the whole
// process. The first input of a process is not checked, because it pays for what libraries set up. Memory is
// what was allocated, with sanitizers, else what became resident.
class Costs {
 public:
  explicit Costs(size_t bytes) : bytes_(bytes) {
    if (__sanitizer_install_malloc_and_free_hooks != nullptr) {
      static const bool installed = __sanitizer_install_malloc_and_free_hooks(OnMalloc, OnFree) != 0;
      Check(installed, "allocations can be counted");
    } else {
      ResetPeak();
    }
    before_ = held.load();
    peak.store(before_);
    resident_ = StatusBytes("VmRSS:");
    started_ = CpuSeconds();
  }
  Costs(const Costs&) = delete;
  Costs& operator=(const Costs&) = delete;

  ~Costs() {
    static bool is_first = true;
    if (is_first) {
      is_first = false;
      return;
    }
    const double seconds = CpuSeconds() - started_;
    const int64_t memory = __sanitizer_install_malloc_and_free_hooks != nullptr
                               ? peak.load() - before_
                               : StatusBytes("VmHWM:") - resident_;
    const auto size = static_cast<int64_t>(bytes_);
    if (memory > 64 * size + kBaseBytes || seconds > MaxSeconds()) {
      std::printf("%lld bytes of input took %lld bytes and %.3f s\n", static_cast<long long>(size),
                  static_cast<long long>(memory), seconds);
    }
    Check(memory <= 64 * size + kBaseBytes, "an input takes at most 64 times its size and 16 MiB");
    Check(seconds <= MaxSeconds(), "an input takes at most 100 ms for each megabyte");
  }

 private:
  static constexpr int64_t kBaseBytes = int64_t{16} << 20;
  // Code with sanitizers and coverage is slower.
  static double Slowness() { return __sanitizer_install_malloc_and_free_hooks != nullptr ? 10 : 1; }

  double MaxSeconds() const { return 0.1 * static_cast<double>(1 + bytes_ / 1'000'000) * Slowness(); }

  static void OnMalloc(const volatile void* memory, size_t size) {
    if (memory == nullptr) return;
    const int64_t now = held.fetch_add(static_cast<int64_t>(size)) + static_cast<int64_t>(size);
    int64_t before = peak.load();
    while (now > before && !peak.compare_exchange_weak(before, now)) {
    }
  }
  static void OnFree(const volatile void* memory) {
    if (memory != nullptr) held.fetch_sub(static_cast<int64_t>(__sanitizer_get_allocated_size(memory)));
  }

  static double CpuSeconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  static void ResetPeak() {
    if (std::FILE* const file = std::fopen("/proc/self/clear_refs", "w"); file != nullptr) {
      std::fputs("5", file);
      std::fclose(file);
    }
  }
  static int64_t StatusBytes(const char* name) {
    std::FILE* const file = std::fopen("/proc/self/status", "r");
    Check(file != nullptr, "/proc/self/status can be read");
    char line[256];
    long long kibibytes = 0;
    while (std::fgets(line, sizeof(line), file) != nullptr) {
      if (std::strncmp(line, name, std::strlen(name)) == 0)
        std::sscanf(line + std::strlen(name), "%lld", &kibibytes);
    }
    std::fclose(file);
    return 1024 * kibibytes;
  }

  static inline std::atomic<int64_t> held{0};
  static inline std::atomic<int64_t> peak{0};

  const size_t bytes_;
  int64_t before_ = 0;
  int64_t resident_ = 0;
  double started_ = 0;
};

}  // namespace saccade::fuzz
