#include "server/batching/batcher_options.h"

#include "absl/strings/str_cat.h"

namespace saccade::server {

absl::Status CheckOptions(const BatcherOptions& options) {
  if (options.max_batch_size < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("max_batch_size is ", options.max_batch_size, "; it has to be at least 1"));
  }
  if (options.max_queue_size < options.max_batch_size) {
    return absl::InvalidArgumentError(absl::StrCat("max_queue_size is ", options.max_queue_size,
                                                   "; it has to be at least max_batch_size, which is ",
                                                   options.max_batch_size));
  }
  if (options.max_queue_delay < absl::ZeroDuration() || options.max_queue_delay == absl::InfiniteDuration()) {
    return absl::InvalidArgumentError(absl::StrCat("max_queue_delay is ",
                                                   absl::FormatDuration(options.max_queue_delay),
                                                   "; it has to be finite and not negative"));
  }
  if (options.queue_timeout <= options.max_queue_delay) {
    return absl::InvalidArgumentError(absl::StrCat("queue_timeout is ",
                                                   absl::FormatDuration(options.queue_timeout),
                                                   "; it has to be longer than max_queue_delay, which is ",
                                                   absl::FormatDuration(options.max_queue_delay)));
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
