#include "kernels/emulator/fibre.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace saccade::emulator {
namespace {

// The fibre being started, because makecontext cannot pass a pointer.
thread_local Fibre* starting = nullptr;

}  // namespace

Fibre::Fibre() : stack_(new std::byte[kStackBytes]) {
#if defined(__SANITIZE_THREAD__)
  tsan_fibre_ = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre() {
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(tsan_fibre_);
#endif
}

void Fibre::Prepare(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  started_ = false;
  fibre_fake_stack_ = nullptr;
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_.get();
  context_.uc_stack.ss_size = kStackBytes;
  context_.uc_link = nullptr;
  makecontext(&context_, &Fibre::Start, 0);
}

void Fibre::Start() {
  Fibre* self = starting;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &self->resumer_bottom_, &self->resumer_bytes_);
#endif
  self->entry_(self->argument_);
  self->SwitchTo(/*into=*/false, /*last=*/true);
}

void Fibre::Resume() {
  starting = this;
  SwitchTo(/*into=*/true, /*last=*/false);
}

void Fibre::Suspend() { SwitchTo(/*into=*/false, /*last=*/false); }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

void Fibre::Enter() { swapcontext(&resumer_, &context_); }
void Fibre::Leave() { swapcontext(&context_, &resumer_); }

#else

// swapcontext also saves the signal mask, which costs a system call each way and dominates the switch. It is
// therefore avoided after the first switch. (Sanitizers need swapcontext, because they intercept longjmp.)
void Fibre::Enter() {
  if (_setjmp(resumer_place_) != 0) return;
  if (started_) _longjmp(place_, 1);
  started_ = true;
  setcontext(&context_);
}

void Fibre::Leave() {
  if (_setjmp(place_) == 0) _longjmp(resumer_place_, 1);
}

#endif

void Fibre::SwitchTo(bool into, [[maybe_unused]] bool last) {
#if defined(__SANITIZE_ADDRESS__)
  void** fake_stack = into ? &resumer_fake_stack_ : &fibre_fake_stack_;
  // The last switch out of a fibre frees its fake stack.
  __sanitizer_start_switch_fiber(last ? nullptr : fake_stack, into ? stack_.get() : resumer_bottom_,
                                 into ? kStackBytes : resumer_bytes_);
#endif
#if defined(__SANITIZE_THREAD__)
  if (into) tsan_resumer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(into ? tsan_fibre_ : tsan_resumer_, 0);
#endif
  into ? Enter() : Leave();
#if defined(__SANITIZE_ADDRESS__)
  into ? __sanitizer_finish_switch_fiber(*fake_stack, nullptr, nullptr)
       : __sanitizer_finish_switch_fiber(*fake_stack, &resumer_bottom_, &resumer_bytes_);
#endif
}

}  // namespace saccade::emulator
