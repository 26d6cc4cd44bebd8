#include "server/grpc/call_start.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "server/core/errors.h"
#include "server/grpc/metadata.h"
#include "server/http/http_headers.h"

namespace saccade::server {
namespace {

// Fields that are the transport's, not the caller's.
bool IsTransports(absl::string_view name) {
  return name == "content-type" || name == "te" || name == "grpc-timeout" || name == "grpc-encoding" ||
         name == "grpc-accept-encoding" || name == "content-length" || name == "host" ||
         name == "connection" || name == "transfer-encoding";
}

// A proxy joins a few values. Each becomes an entry with a copy of the name, so a field of commas would
// become thousands of names.
constexpr ptrdiff_t kMaxJoined = 8;
constexpr size_t kMaxJoinedName = 256;

absl::Status AddBinary(absl::string_view name, absl::string_view value, Metadata& metadata) {
  const ptrdiff_t commas = std::count(value.begin(), value.end(), ',');
  if (commas > 0 && (commas >= kMaxJoined || name.size() > kMaxJoinedName)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the metadata ", Shortened(name), " joins ", commas + 1, " values; at most ", kMaxJoined,
                     " are accepted, of a name of at most ", kMaxJoinedName, " bytes"));
  }
  // HTTP lets a proxy join the values of a field; base64 has no comma.
  for (const absl::string_view text : absl::StrSplit(value, ',')) {
    auto bytes = DecodeBinary(absl::StripAsciiWhitespace(text));
    if (!bytes) {
      return absl::InternalError(absl::StrCat("the metadata ", Shortened(name),
                                              " is not base64, which names that end with ", "-bin require"));
    }
    metadata.emplace_back(std::string(name), *std::move(bytes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CallStart> ReadCallStart(const RequestHead& head, const Caller& caller, absl::Time arrival) {
  CallStart start{.method = head.path,
                  .client = caller.client,
                  .address = caller.address,
                  .metadata = {},
                  .arrival = arrival,
                  .deadline = absl::InfiniteFuture()};
  start.metadata.reserve(head.headers.size());
  for (const auto& [name, value] : head.headers) {
    if (IsTransports(name)) continue;
    if (!IsBinaryName(name)) {
      start.metadata.emplace_back(name, value);
    } else if (absl::Status added = AddBinary(name, value, start.metadata); !added.ok()) {
      return added;
    }
  }
  if (const auto timeout = FindHeader(head.headers, "grpc-timeout")) {
    const auto duration = ParseTimeout(*timeout);
    if (!duration) {
      return absl::InternalError(absl::StrCat("grpc-timeout is '", Shortened(*timeout),
                                              "', expected up to 8 digits and one ",
                                              "of the units H, M, S, m, u, n"));
    }
    start.deadline = arrival + *duration;
  }
  return start;
}

absl::StatusOr<MessageEncoding> ReadMessageEncoding(const RequestHead& head) {
  const auto name = FindHeader(head.headers, "grpc-encoding");
  if (!name) return MessageEncoding::kIdentity;
  const auto encoding = MessageEncodingOf(*name);
  if (encoding) return *encoding;
  return absl::UnimplementedError(absl::StrCat("the grpc-encoding '", Shortened(*name),
                                               "' is not supported; expected one of ", kAcceptedEncodings));
}

}  // namespace saccade::server
