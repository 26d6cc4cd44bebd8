#include "server/protocols/log_calls.h"

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/protocols/call_headers.h"
#include "server/tracing/trace_context.h"

namespace saccade::server {
namespace {

constexpr int64_t kMaxLines = 10;
constexpr size_t kMaxReason = 1024;

// Limits the lines of all threads together.
class Lines {
 public:
  // Returns true if a line may be written now, and sets `left_out` to the number left out since the last one.
  bool Take(int64_t* left_out) {
    const absl::Time now = absl::Now();
    const absl::MutexLock lock(&mutex_);
    if (now - second_ >= absl::Seconds(1)) {
      second_ = now;
      written_ = 0;
    }
    if (written_ == kMaxLines) {
      ++left_out_;
      return false;
    }
    ++written_;
    *left_out = std::exchange(left_out_, 0);
    return true;
  }

 private:
  absl::Mutex mutex_;
  absl::Time second_ ABSL_GUARDED_BY(mutex_) = absl::InfinitePast();
  int64_t written_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t left_out_ ABSL_GUARDED_BY(mutex_) = 0;
};

bool IsFault(const absl::Status& status) {
  return absl::IsInternal(status) || absl::IsUnknown(status) || absl::IsDataLoss(status);
}

}  // namespace

LogCall LogCallOf(const HttpHeaders& headers) {
  LogCall call{.request_id = FirstOf(ValuesOf(headers, kRequestId)), .trace_id = {}};
  if (const auto context = ReadTraceContext(ValuesOf(headers, kTraceparent), {})) {
    call.trace_id = ToHex(context->trace);
  }
  return call;
}

void LogFault(const absl::Status& status, const NamedCall& call, const HttpHeaders& headers) {
  if (!IsFault(status)) return;
  static Lines lines;
  int64_t left_out = 0;
  if (!lines.Take(&left_out)) return;
  LogCall names = LogCallOf(headers);
  if (!call.id.empty()) names.request_id = std::string(call.id);
  if (call.record != nullptr && call.record->trace() != TraceId())
    names.trace_id = ToHex(call.record->trace());
  const LogCallScope scope(std::move(names));
  Log(LogLevel::kError, "call failed",
      {{"method", call.method},
       {"model", call.model},
       {"status", absl::StatusCodeToString(status.code())},
       {"reason", status.message().substr(0, kMaxReason)},
       {"left_out", left_out}});
}

}  // namespace saccade::server
