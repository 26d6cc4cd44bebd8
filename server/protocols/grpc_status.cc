#include "server/protocols/grpc_status.h"

#include <optional>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/core/bad_field.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

constexpr char kDomain[] = "saccade";

// Clients accept 8 KiB of trailing metadata, which may contain the message up to three times.
constexpr size_t kMaxMessage = 1500;

// Empty if there is nothing to send besides code and message.
std::string Details(const absl::Status& status, std::optional<absl::Duration> retry) {
  google::rpc::Status message;
  if (status.message().size() > kMaxMessage) return "";
  if (retry) {
    absl::Duration rest = *retry;
    google::rpc::RetryInfo info;
    info.mutable_retry_delay()->set_seconds(absl::IDivDuration(rest, absl::Seconds(1), &rest));
    info.mutable_retry_delay()->set_nanos(static_cast<int32_t>(absl::ToInt64Nanoseconds(rest)));
    message.add_details()->PackFrom(info);
  }
  if (const auto reason = StatedShedReason(status)) {
    google::rpc::ErrorInfo info;
    info.set_reason(absl::AsciiStrToUpper(ShedReasonName(*reason)));
    info.set_domain(kDomain);
    message.add_details()->PackFrom(info);
  }
  if (const auto field = BadFieldOf(status)) {
    google::rpc::BadRequest request;
    auto* violation = request.add_field_violations();
    violation->set_field(*field);
    violation->set_description(std::string(status.message()));
    message.add_details()->PackFrom(request);
  }
  if (message.details().empty()) return "";
  message.set_code(static_cast<int>(status.code()));
  message.set_message(std::string(status.message()));
  return message.SerializeAsString();
}

}  // namespace

CallEnd ToCallEnd(const absl::Status& status, RetryJitter* jitter) {
  if (status.ok()) return {};
  const auto hint = jitter == nullptr ? std::nullopt : RetryAfter(status);
  if (!hint) return {.status = status, .details = Details(status, std::nullopt)};
  const absl::Duration retry = jitter->Spread(*hint);
  return {.status = status,
          .details = Details(status, retry),
          .trailers = {{"grpc-retry-pushback-ms", absl::StrCat(absl::ToInt64Milliseconds(retry))}}};
}

}  // namespace saccade::server
