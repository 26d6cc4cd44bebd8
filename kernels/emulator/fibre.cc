#include "kernels/emulator/fibre.h"

#if defined(SACCADE_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(SACCADE_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

namespace saccade::emulator {
namespace {

// The fibre being started, because a stack starts a function without arguments.
thread_local Fibre* starting = nullptr;

}  // namespace

Fibre::Fibre() : memory_(new std::byte[kStackBytes]) {
#if defined(SACCADE_TSAN)
  tsan_fibre_ = __tsan_create_fiber(0);
#endif
}

Fibre::~Fibre() {
#if defined(SACCADE_TSAN)
  __tsan_destroy_fiber(tsan_fibre_);
#endif
}

void Fibre::Prepare(void (*entry)(void*), void* argument) {
  entry_ = entry;
  argument_ = argument;
  fibre_fake_stack_ = nullptr;
#if defined(SACCADE_ASAN)
  // What an abandoned run had on the stack.
  ASAN_UNPOISON_MEMORY_REGION(memory_.get(), kStackBytes);
#endif
  own_.Prepare(memory_.get(), kStackBytes, &Fibre::Start);
}

void Fibre::Start() {
  Fibre* self = starting;
#if defined(SACCADE_ASAN)
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

void Fibre::SwitchTo(bool into, [[maybe_unused]] bool last) {
#if defined(SACCADE_ASAN)
  void** fake_stack = into ? &resumer_fake_stack_ : &fibre_fake_stack_;
  // The last switch out of a fibre frees its fake stack.
  __sanitizer_start_switch_fiber(last ? nullptr : fake_stack, into ? memory_.get() : resumer_bottom_,
                                 into ? kStackBytes : resumer_bytes_);
#endif
#if defined(SACCADE_TSAN)
  if (into) tsan_resumer_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(into ? tsan_fibre_ : tsan_resumer_, 0);
#endif
  into ? Stack::Switch(resumer_, own_) : Stack::Switch(own_, resumer_);
#if defined(SACCADE_ASAN)
  into ? __sanitizer_finish_switch_fiber(*fake_stack, nullptr, nullptr)
       : __sanitizer_finish_switch_fiber(*fake_stack, &resumer_bottom_, &resumer_bytes_);
#endif
}

}  // namespace saccade::emulator
