// A coroutine with its own stack, built on ucontext, with the annotations that sanitizers need for stack
// switches.
#pragma once

#include <setjmp.h>
#include <ucontext.h>

#include <cstddef>
#include <memory>

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
  void Enter();
  void Leave();

  std::unique_ptr<std::byte[]> stack_;
  ucontext_t context_;
  ucontext_t resumer_;
  // Where each side continues, after its first switch.
  jmp_buf place_;
  jmp_buf resumer_place_;
  bool started_ = false;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  // AddressSanitizer's state: the fake stack of each side, and the bounds of the resumer's real stack.
  void* fibre_fake_stack_ = nullptr;
  void* resumer_fake_stack_ = nullptr;
  const void* resumer_bottom_ = nullptr;
  size_t resumer_bytes_ = 0;
  // ThreadSanitizer's handles of the two sides.
  void* tsan_fibre_ = nullptr;
  void* tsan_resumer_ = nullptr;
};

}  // namespace saccade::emulator
