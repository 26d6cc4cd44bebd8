#include "server/protocols/rest/kept_answer.h"

#include <exception>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/http/content_coding.h"

namespace saccade::server {

KeptAnswer::Text KeptAnswer::Gzip() {
  if (gzip_ != nullptr) return gzip_;
  const absl::string_view pieces[] = {*text_};
  try {
    gzip_ = std::make_shared<const std::string>(Encode(ContentCoding::kGzip, pieces));
  } catch (const std::exception&) {
    return nullptr;
  }
  return gzip_;
}

absl::StatusOr<HttpResponse> KeptAnswer::Get(const HttpRequest& request, uint64_t generation, Clock* clock,
                                             Make make) {
  const auto accepted = request.Header("accept-encoding");
  Text text, gzip;
  {
    const absl::MutexLock lock(&mutex_);
    const absl::Time now = clock->Now();
    if (!IsCurrent(generation, now)) {
      auto made = make();
      if (!made.ok()) return made.status();
      text_ = std::make_shared<const std::string>(*std::move(made));
      gzip_ = nullptr;
      generation_ = generation;
      made_at_ = now;
    }
    text = text_;
    if (accepted && Accepts(*accepted, ContentCoding::kGzip)) gzip = Gzip();
  }
  HttpResponse response;
  // Other codings would be computed for each request.
  response.compressible = false;
  // Copied, so that it is charged to this client.
  response.body = gzip == nullptr ? *text : *gzip;
  if (gzip != nullptr) response.headers.emplace_back("content-encoding", "gzip");
  response.headers.emplace_back("vary", "Accept-Encoding");
  return response;
}

}  // namespace saccade::server
