#include "server/http/request_body.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Bodies of unknown length are charged in steps, which double from this.
constexpr size_t kFirstStep = size_t{64} << 10;
// Compressed bytes that are decoded at once. They become at most about a thousand times larger.
constexpr size_t kDecodeStep = 256;
constexpr size_t kMostGrowth = 1024;
// zlib's window and tables.
constexpr int64_t kDecoderBytes = int64_t{48} << 10;

HttpResponse ToHttp(const HttpService::Options& options, const absl::Status& status) {
  if (options.to_http) return options.to_http(status);
  HttpResponse response = HttpError(503, status.message());
  response.headers = {{"Retry-After", "1"}};
  return response;
}

RequestBody::Refused NotOfTheCoding(const absl::Status& status) {
  return {HttpError(400, status.message()), std::nullopt};
}

// `what`: the body, and how many bytes it has if that is known.
HttpResponse TooLarge(absl::string_view what, size_t max) {
  return HttpError(
      413, absl::StrCat(what, " more than the ", max, " bytes taken; --max-message-bytes sets the bound"));
}

}  // namespace

RequestBody::RequestBody(const HttpService::Options* options, const std::string& client, ContentCoding coding)
    : options_(*options),
      client_(client),
      coding_(coding),
      is_coded_(coding != ContentCoding::kIdentity),
      received_(options->ledger, client),
      decoded_(options->ledger, client) {}

std::optional<RequestBody::Refused> RequestBody::Announce(uint64_t length) {
  if (length > options_.max_body_bytes) {
    return Refused{TooLarge(absl::StrCat("the body has ", length, " bytes,"), options_.max_body_bytes),
                   Refusal::kBodyTooLarge};
  }
  return Reserve(received_, length);
}

std::optional<RequestBody::Refused> RequestBody::Append(absl::string_view bytes) {
  const size_t size = received_.size() + bytes.size();
  if (size > options_.max_body_bytes)
    return Refused{TooLarge("the body has", options_.max_body_bytes), Refusal::kBodyTooLarge};
  if (auto refused = Grow(received_, size, options_.max_body_bytes)) return refused;
  received_.Append(bytes);
  return std::nullopt;
}

std::optional<RequestBody::Refused> RequestBody::Expand() {
  if (received_.size() < received_.capacity() || received_.size() == options_.max_body_bytes) {
    return std::nullopt;
  }
  return Grow(received_, received_.size() + 1, options_.max_body_bytes);
}

uint64_t RequestBody::allowed() const {
  return received_.capacity() < options_.max_body_bytes ? received_.capacity()
                                                        : uint64_t{options_.max_body_bytes} + 1;
}

std::optional<RequestBody::Refused> RequestBody::Decode(size_t max) {
  if (decoded()) return std::nullopt;
  if (!decoder_) {
    if (auto refused = BeginDecoding()) return refused;
  }
  const size_t step = std::max<size_t>(1, std::min(kDecodeStep, max / kMostGrowth));
  const size_t decoded_end = decoded_.size() + max;
  const size_t read_end = std::min(received_.size(), position_ + max);
  std::optional<Refused> refused;
  while (position_ < read_end && decoded_.size() <= decoded_end) {
    const absl::string_view bytes = received_.bytes().substr(position_, std::min(step, read_end - position_));
    position_ += bytes.size();
    const absl::Status written = decoder_->Write(bytes, [&](absl::string_view decoded) {
      const size_t size = decoded_.size() + decoded.size();
      refused = size > MaxDecoded() ? DecodedTooLarge() : Grow(decoded_, size, MaxDecoded());
      if (refused) return false;
      decoded_.Append(decoded);
      return true;
    });
    if (!written.ok()) return NotOfTheCoding(written);
    if (refused) return refused;
  }
  if (position_ < received_.size()) return std::nullopt;
  if (const absl::Status complete = decoder_->Finish(); !complete.ok()) return NotOfTheCoding(complete);
  decoder_.reset();
  decoder_charge_ = ByteCharge();
  is_decoded_ = true;
  received_.Clear();
  return std::nullopt;
}

std::optional<RequestBody::Refused> RequestBody::BeginDecoding() {
  if (options_.ledger != nullptr) {
    auto charge = options_.ledger->Charge(client_, kDecoderBytes);
    if (!charge.ok()) return Refused{ToHttp(options_, charge.status()), Refusal::kBytes};
    decoder_charge_ = *std::move(charge);
  }
  decoder_.emplace(coding_);
  return std::nullopt;
}

size_t RequestBody::MaxDecoded() const {
  // A body is not larger than max_body_bytes, so the product fits.
  const size_t by_ratio = received_.size() * options_.max_compression_ratio;
  return std::min(options_.max_body_bytes, std::max(by_ratio, options_.max_decompressed_bytes));
}

RequestBody::Refused RequestBody::DecodedTooLarge() const {
  const size_t max = MaxDecoded();
  if (max == options_.max_body_bytes)
    return {TooLarge("the body, decompressed, has", max), Refusal::kDecompressedTooLarge};
  return {HttpError(413, absl::StrCat("the body, decompressed, has more than the ", max, " bytes that ",
                                      received_.size(), " compressed ones may become; send it uncompressed")),
          Refusal::kDecompressedTooLarge};
}

// Makes the capacity suffice for `size` bytes, which are not more than `max`, and for more if they are all
// used then.
std::optional<RequestBody::Refused> RequestBody::Grow(ChargedBuffer& buffer, size_t size, size_t max) {
  if (size <= buffer.capacity()) return std::nullopt;
  return Reserve(buffer, std::min(max, std::max({size, 2 * buffer.capacity(), kFirstStep})));
}

std::optional<RequestBody::Refused> RequestBody::Reserve(ChargedBuffer& buffer, size_t capacity) {
  const absl::Status reserved = buffer.Reserve(capacity);
  if (reserved.ok()) return std::nullopt;
  return Refused{ToHttp(options_, reserved), Refusal::kBytes};
}

}  // namespace saccade::server
