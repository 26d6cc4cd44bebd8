// A coroutine with its own stack, with the annotations that sanitizers need for stack switches.
#pragma once

#include <cstddef>
#include <memory>

#include "kernels/emulator/stack.h"

namespace saccade::emulator {

// Not thread-safe; a fibre belongs to the OS thread that resumes it.
class Fibre {
 public:
  static constexpr size_t kStackBytes = 128 * 1024;

  Fibre();
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  // Makes the next Resume() start `entry(argument)`. Abandons a previous run.
  void Prepare(void (*entry)(void*), void* argument);
  // Runs until the fibre suspends or its entry returns.
  void Resume();
  // Called within the fibre: returns to the caller of Resume().
  void Suspend();

 private:
  static void Start();
  void SwitchTo(bool into, bool last);

  std::unique_ptr<std::byte[]> memory_;
  Stack own_;
  Stack resumer_;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  // AddressSanitizer's state: the fake stack of each side, and the bounds of the resumer's real stack.
  [[maybe_unused]] void* fibre_fake_stack_ = nullptr;
  [[maybe_unused]] void* resumer_fake_stack_ = nullptr;
  [[maybe_unused]] const void* resumer_bottom_ = nullptr;
  [[maybe_unused]] size_t resumer_bytes_ = 0;
  // ThreadSanitizer's handles of the two sides.
  [[maybe_unused]] void* tsan_fibre_ = nullptr;
  [[maybe_unused]] void* tsan_resumer_ = nullptr;
};

}  // namespace saccade::emulator
