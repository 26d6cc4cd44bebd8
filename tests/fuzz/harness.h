// Shared by all harnesses. A harness is a file NAME_fuzz.cc with LLVMFuzzerTestOneInput. In the presets asan
// and fuzz it is driven by libFuzzer; in every other build it only runs the seeds and regressions
// (replay.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace saccade::fuzz {

// Aborts unless `holds`, so that libFuzzer saves the input. `what` describes the property.
inline void Check(bool holds, const char* what) {
  if (holds) return;
  // Printed on stdout, because stderr may be closed to suppress noisy libraries.
  std::printf("harness: it does not hold that %s\n", what);
  std::fflush(stdout);
  std::abort();
}

inline std::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Reads every byte, so that AddressSanitizer detects invalid memory.
inline void Touch(std::string_view bytes) {
  volatile char seen = 0;
  for (const char byte : bytes) seen = static_cast<char>(seen ^ byte);
}

}  // namespace saccade::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
