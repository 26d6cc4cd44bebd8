// Compresses and decompresses the bodies of requests and responses with gzip and deflate.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "server/http/http_message.h"

namespace saccade::server {

enum class ContentCoding { kIdentity, kGzip, kDeflate };

absl::string_view NameOf(ContentCoding coding);

// The coding that a Content-Encoding names. Nullopt if it is not known, or if there are several.
std::optional<ContentCoding> ContentCodingOf(absl::string_view header);

// The coding with the highest weight in an Accept-Encoding; of equal weights the first.
ContentCoding AcceptedCoding(absl::string_view header);

// Whether an Accept-Encoding names the coding, with a weight above 0.
bool Accepts(absl::string_view header, ContentCoding coding);

// Decodes a body that comes in pieces.
class ContentDecoder {
 public:
  // REQUIRES: `coding` is not identity.
  explicit ContentDecoder(ContentCoding coding);
  ~ContentDecoder();
  ContentDecoder(const ContentDecoder&) = delete;
  ContentDecoder& operator=(const ContentDecoder&) = delete;

  // Decodes `bytes` and hands the result to `decoded` in bounded pieces, as long as it returns true.
  // INVALID_ARGUMENT if the bytes are not of the coding.
  absl::Status Write(absl::string_view bytes, absl::FunctionRef<bool(absl::string_view)> decoded);

  // INVALID_ARGUMENT if the body was cut off.
  absl::Status Finish() const;

 private:
  struct State;

  const ContentCoding coding_;
  std::unique_ptr<State> state_;
};

// Encodes all pieces as one body. Prefers speed to size.
std::string Encode(ContentCoding coding, absl::Span<const absl::string_view> pieces);

}  // namespace saccade::server
