#include "server/tracing/access_log.h"

#include <cmath>
#include <utility>

#include "server/logging/log.h"

namespace saccade::server {
namespace {

// Rounded to a microsecond.
double Milliseconds(absl::Duration duration) {
  return std::round(absl::ToDoubleMicroseconds(duration)) / 1000;
}

}  // namespace

bool AccessLog::Take(int64_t* left_out) {
  const absl::Time now = clock_->Now();
  const absl::MutexLock lock(&mutex_);
  if (now - second_ >= absl::Seconds(1)) {
    second_ = now;
    written_ = 0;
  }
  if (max_per_second_ > 0 && written_ >= max_per_second_) {
    ++left_out_;
    return false;
  }
  ++written_;
  *left_out = std::exchange(left_out_, 0);
  return true;
}

void AccessLog::Write(const CallFacts& call) {
  int64_t left_out = 0;
  if (!Take(&left_out)) return;
  Log(LogLevel::kInfo, "call",
      {{"request_id", call.request_id},
       {"trace_id", call.trace == TraceId() ? "" : ToHex(call.trace)},
       {"client", call.origin.client},
       {"method", call.origin.name()},
       {"model", call.model},
       {"version", call.version},
       {"status", absl::StatusCodeToString(call.end.status.code())},
       {"bytes_in", call.received_bytes},
       {"bytes_out", call.end.bytes},
       {"batch_size", call.batch_size},
       {"decode_ms", Milliseconds(call.decode)},
       {"queue_ms", Milliseconds(call.queue)},
       {"compute_ms", Milliseconds(call.compute)},
       {"encode_ms", Milliseconds(call.encode)},
       {"total_ms", Milliseconds(call.total)},
       {"left_out", left_out}});
}

}  // namespace saccade::server
