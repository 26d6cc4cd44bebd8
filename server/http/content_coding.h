// gzip and deflate, as bodies come and go in them.
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

// Of a Content-Encoding; nothing if the coding is not known, or there are several.
std::optional<ContentCoding> ContentCodingOf(absl::string_view header);

// What an Accept-Encoding likes best of what there is; of equals what it names first.
ContentCoding AcceptedCoding(absl::string_view header);

// Decodes a body that comes in pieces.
class Decoder {
 public:
  // `coding` is not identity.
  explicit Decoder(ContentCoding coding);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Hands what `bytes` hold to `decoded`, a bounded piece at a time, as long as it returns true.
  // INVALID_ARGUMENT if they are not of the coding.
  absl::Status Write(absl::string_view bytes, absl::FunctionRef<bool(absl::string_view)> decoded);

  // INVALID_ARGUMENT if the body was cut off.
  absl::Status Finish() const;

 private:
  struct State;

  const ContentCoding coding_;
  std::unique_ptr<State> state_;
};

// All pieces as one body, fast rather than small.
std::string Encode(ContentCoding coding, absl::Span<const absl::string_view> pieces);

}  // namespace saccade::server
