// Switching from one stack to another. On x86-64 this takes some twenty instructions; elsewhere ucontext does
// it, which costs two system calls for the signal mask.
#pragma once

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace saccade::emulator {

// A stack that does not run: its registers are saved on it, or its first function was not called yet.
class Stack {
 public:
  // Makes the next switch to this stack call `start`, which must not return, on [memory, memory + bytes).
  void Prepare(std::byte* memory, size_t bytes, void (*start)());

  // Saves the running stack in `from` and continues on `to`. Returns when something switches to `from` again.
  static void Switch(Stack& from, Stack& to);

 private:
#if defined(__x86_64__)
  void* top_ = nullptr;
#else
  ucontext_t context_;
#endif
};

}  // namespace saccade::emulator
