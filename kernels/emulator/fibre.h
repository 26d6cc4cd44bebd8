// A stack and a place in a function: ucontext, with what the sanitizers must be told about switching stacks.
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

  // Makes `entry(argument)` what the next Resume starts. Whatever ran before is abandoned.
  void Prepare(void (*entry)(void*), void* argument);
  // Runs until the fibre suspends or its entry returns.
  void Resume();
  // Called within the fibre: goes back to where it was resumed.
  void Suspend();

 private:
  static void Start();
  void SwitchTo(bool into, bool last);
  void Enter();
  void Leave();

  std::unique_ptr<std::byte[]> stack_;
  ucontext_t context_;
  ucontext_t resumer_;
  // Where each side goes on, once both have been there.
  jmp_buf place_;
  jmp_buf resumer_place_;
  bool started_ = false;
  void (*entry_)(void*) = nullptr;
  void* argument_ = nullptr;
  // AddressSanitizer's: each side's fake stack, and the resumer's real one.
  void* fibre_fake_stack_ = nullptr;
  void* resumer_fake_stack_ = nullptr;
  const void* resumer_bottom_ = nullptr;
  size_t resumer_bytes_ = 0;
  // ThreadSanitizer's names for the two sides.
  void* tsan_fibre_ = nullptr;
  void* tsan_resumer_ = nullptr;
};

}  // namespace saccade::emulator
