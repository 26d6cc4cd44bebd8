// A computed text that answers many equal requests.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "server/core/clock.h"
#include "server/http/http_message.h"

namespace saccade::server {

// Thread-safe.
class KeptAnswer {
 public:
  using Make = absl::FunctionRef<absl::StatusOr<std::string>()>;

  // Age at which a text is computed again even if its generation has not changed.
  static constexpr absl::Duration kMaxAge = absl::Milliseconds(100);

  // Responds with a text that `make` has returned at most kMaxAge ago and for no earlier generation, else
  // with what it returns now. `generation` grows with each change of what `make` reads; read it before this
  // call. The response comes in gzip if the request accepts that; the text is compressed once. Blocks while
  // another thread computes the text, so that one does at a time. Errors of `make`.
  absl::StatusOr<HttpResponse> Get(const HttpRequest& request, uint64_t generation, Clock* clock, Make make)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Text = std::shared_ptr<const std::string>;

  bool IsCurrent(uint64_t generation, absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return text_ != nullptr && generation_ >= generation && now - made_at_ < kMaxAge;
  }
  // Null if there is no memory to compress the text.
  Text Gzip() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  absl::Mutex mutex_;
  Text text_ ABSL_GUARDED_BY(mutex_);
  // Null until a request accepts it.
  Text gzip_ ABSL_GUARDED_BY(mutex_);
  // From before the text was computed.
  uint64_t generation_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Time made_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace saccade::server
