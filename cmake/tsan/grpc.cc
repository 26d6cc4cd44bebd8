// Reports gRPC's synchronization to ThreadSanitizer. The distributions' gRPC is built without
// instrumentation, so ThreadSanitizer does not see that writes before the start of an operation happen before
// its completion. In a program of the tsan preset these definitions take precedence over the shared
// library's; each reports its operation and calls the original.
#include <grpc/grpc.h>
#include <grpcpp/support/server_callback.h>
#include <sanitizer/tsan_interface.h>

#include <atomic>

#include "cmake/tsan/real.h"

using saccade::tsan::Real;

namespace {

// Acquires a call's two reference counters, which follow its vtable pointer. The library decrements them too:
// what another thread did before its decrement happens before what the thread that reaches zero does.
void AcquireCounters(grpc::internal::ServerCallbackCall* call) {
  auto* const counters = reinterpret_cast<std::atomic_int*>(reinterpret_cast<char*>(call) + sizeof(void*));
  __tsan_acquire(&counters[0]);
  __tsan_acquire(&counters[1]);
}

}  // namespace

void grpc::internal::ServerCallbackCall::ScheduleOnDone(bool inline_ondone) {
  static const auto real =
      Real<void (*)(ServerCallbackCall*, bool)>("_ZN4grpc8internal18ServerCallbackCall14ScheduleOnDoneEb");
  AcquireCounters(this);
  real(this, inline_ondone);
}

void grpc::internal::ServerCallbackCall::CallOnCancel(ServerReactor* reactor) {
  static const auto real = Real<void (*)(ServerCallbackCall*, ServerReactor*)>(
      "_ZN4grpc8internal18ServerCallbackCall12CallOnCancelEPNS0_13ServerReactorE");
  AcquireCounters(this);
  real(this, reactor);
}

extern "C" {

// Calls to the C library (free, memcpy) from libraries without instrumentation are ignored; a failed
// allocation returns null.
const char* __tsan_default_options() {
  return "ignore_noninstrumented_modules=1:allocator_may_return_null=1";
}

grpc_call_error grpc_call_start_batch(grpc_call* call, const grpc_op* ops, size_t count, void* tag,
                                      void* reserved) {
  static const auto real = Real<decltype(grpc_call_start_batch)*>("grpc_call_start_batch");
  __tsan_release(tag);
  return real(call, ops, count, tag, reserved);
}

grpc_event grpc_completion_queue_next(grpc_completion_queue* queue, gpr_timespec deadline, void* reserved) {
  static const auto real = Real<decltype(grpc_completion_queue_next)*>("grpc_completion_queue_next");
  const grpc_event event = real(queue, deadline, reserved);
  if (event.type == GRPC_OP_COMPLETE) __tsan_acquire(event.tag);
  return event;
}

}  // extern "C"
