// What the harnesses have in common. Each is one file NAME_fuzz.cc with LLVMFuzzerTestOneInput: led by
// libFuzzer in the preset fuzz, and fed with seeds and regressions alone (replay.cc) in every other build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace saccade::fuzz {

// Ends the process, which libFuzzer keeps the input of, unless `holds`; `what` should have.
inline void Check(bool holds, const char* what) {
  if (holds) return;
  // Where stderr is closed to noisy libraries, this still shows.
  std::printf("harness: it does not hold that %s\n", what);
  std::fflush(stdout);
  std::abort();
}

inline std::string_view AsText(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

// Reads every byte, so that AddressSanitizer sees what cannot be read.
inline void Touch(std::string_view bytes) {
  volatile char seen = 0;
  for (const char byte : bytes) seen = static_cast<char>(seen ^ byte);
}

}  // namespace saccade::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
