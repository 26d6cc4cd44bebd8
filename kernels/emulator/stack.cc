#include "kernels/emulator/stack.h"

#include <cstdint>

#if defined(__x86_64__)

// Saves the registers that a function must preserve on the stack, and the stack pointer in *from; then
// restores those of `to`.
extern "C" void saccade_switch_stack(void** from, void* to);
asm(R"(
  .text
  .hidden saccade_switch_stack
  .globl saccade_switch_stack
  .type saccade_switch_stack, @function
saccade_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size saccade_switch_stack, . - saccade_switch_stack
)");

namespace saccade::emulator {

void Stack::Prepare(std::byte* memory, size_t bytes, void (*start)()) {
  constexpr size_t kRegisters = 6;
  // A function is entered with the stack pointer 8 beyond a multiple of 16, where its return address lies.
  const auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) & ~uintptr_t{15};
  auto* const entered = reinterpret_cast<void**>(end) - 1;
  entered[0] = nullptr;
  entered[-1] = reinterpret_cast<void*>(start);
  for (size_t i = 0; i < kRegisters; ++i) entered[-2 - static_cast<ptrdiff_t>(i)] = nullptr;
  top_ = static_cast<void*>(entered - 1 - kRegisters);
}

void Stack::Switch(Stack& from, Stack& to) { saccade_switch_stack(&from.top_, to.top_); }

}  // namespace saccade::emulator

#else

namespace saccade::emulator {

void Stack::Prepare(std::byte* memory, size_t bytes, void (*start)()) {
  getcontext(&context_);
  context_.uc_stack.ss_sp = memory;
  context_.uc_stack.ss_size = bytes;
  context_.uc_link = nullptr;
  makecontext(&context_, start, 0);
}

void Stack::Switch(Stack& from, Stack& to) { swapcontext(&from.context_, &to.context_); }

}  // namespace saccade::emulator

#endif
