#include "server/http/fixed_response.h"

#include <exception>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "server/http/content_coding.h"
#include "server/http/http_reply.h"

namespace saccade::server {
namespace {

class Fixed {
 public:
  explicit Fixed(HttpResponse response) : response_(std::move(response)) {}

  const HttpResponse& response() const { return response_; }

  // The content; empty if there is no memory to compress it. Thread-safe.
  std::string_view Gzip() ABSL_LOCKS_EXCLUDED(mutex_) {
    absl::MutexLock lock(&mutex_);
    try {
      if (gzip_.empty()) gzip_ = Encode(ContentCoding::kGzip, BodyPieces(response_));
    } catch (const std::exception&) {
      return {};
    }
    return gzip_;
  }

 private:
  const HttpResponse response_;
  absl::Mutex mutex_;
  // Made once, and then never changed.
  std::string gzip_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

HttpHandler Always(HttpResponse response) {
  const auto fixed = std::make_shared<Fixed>(std::move(response));
  return [fixed](const std::shared_ptr<const HttpRequest>& request, const HttpReply& reply) {
    HttpResponse made = fixed->response();
    // Other codings would be computed for each request.
    made.compressible = false;
    const auto accepted = request->Header("accept-encoding");
    if (accepted && Accepts(*accepted, ContentCoding::kGzip)) {
      if (const std::string_view gzip = fixed->Gzip(); !gzip.empty()) {
        made.attached = {BytePieces(gzip, fixed)};
        made.headers.emplace_back("content-encoding", "gzip");
      }
    }
    made.headers.emplace_back("vary", "Accept-Encoding");
    reply(std::move(made));
  };
}

}  // namespace saccade::server
