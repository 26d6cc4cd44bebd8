#include "server/http/request_body.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Chunk sizes, extensions and trailers have to come within so many bytes.
constexpr size_t kFetch = size_t{64} << 10;
constexpr size_t kFirstCapacity = size_t{64} << 10;
constexpr size_t kCharge = size_t{64} << 10;

HttpResponse CutOff() {
  if (errno == ETIMEDOUT) return HttpError(408, "the body did not come to its end in time");
  return HttpError(400, "the body ended before its end");
}

}  // namespace

HttpResponse BodyTooLarge(absl::string_view size, size_t max) {
  return HttpError(413, absl::StrCat("the body has ", size, " bytes, more than the ", max,
                                     " taken; --max-message-bytes sets the bound"));
}

bool BodyRoom::Take(size_t bytes) {
  size_t left = left_;
  do {
    if (bytes > left) return false;
  } while (!left_.compare_exchange_weak(left, left - bytes));
  return true;
}

bool RequestBody::Reserve(size_t size) {
  if (size > max_) {
    error_ = BodyTooLarge("more", max_);
    return false;
  }
  if (size <= capacity_) return true;
  const size_t capacity = std::min(max_, std::max({size, 2 * capacity_, kFirstCapacity}));
  std::unique_ptr<char[]> larger(new char[capacity]);
  if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_);
  data_ = std::move(larger);
  capacity_ = capacity;
  return true;
}

// Room is taken as the bytes come: who only says that many will must not keep others out.
bool RequestBody::Charge(size_t size) {
  if (size <= taken_) return true;
  const size_t more = std::max(size - taken_, kCharge);
  if (!room_->Take(more)) {
    error_ = HttpError(503, "the bodies of other requests fill the room for them; try again");
    error_->headers = {{"Retry-After", "1"}};
    return false;
  }
  taken_ += more;
  return true;
}

bool RequestBody::Append(absl::string_view bytes) {
  if (!Reserve(size_ + bytes.size()) || !Charge(size_ + bytes.size())) return false;
  std::memcpy(data_.get() + size_, bytes.data(), bytes.size());
  size_ += bytes.size();
  return true;
}

bool RequestBody::Decode(absl::string_view bytes) {
  if (!decoder_) return Append(bytes);
  const absl::Status written =
      decoder_->Write(bytes, [this](absl::string_view decoded) { return Append(decoded); });
  if (!written.ok()) error_ = HttpError(400, std::string(written.message()));
  return !error_;
}

std::optional<HttpResponse> RequestBody::Read(Connection& connection, RequestParser& parser,
                                              ContentCoding coding) {
  if (coding != ContentCoding::kIdentity) decoder_.emplace(coding);
  const RequestHead& head = parser.head();
  const size_t length = head.content_length.value_or(0);
  auto error = head.chunked ? ReadChunks(connection, parser)
                            : (decoder_ ? ReadCoded(connection, length) : ReadPlain(connection, length));
  if (error) return error;
  if (decoder_ && head.has_body()) {
    if (const absl::Status whole = decoder_->Finish(); !whole.ok())
      return HttpError(400, std::string(whole.message()));
  }
  return std::nullopt;
}

std::optional<HttpResponse> RequestBody::ReadPlain(Connection& connection, size_t length) {
  if (length == 0) return std::nullopt;
  if (!Reserve(length)) return error_;
  while (size_ < length) {
    const ssize_t got = connection.Read(data_.get() + size_, length - size_);
    if (got <= 0) return CutOff();
    size_ += static_cast<size_t>(got);
    if (!Charge(size_)) return error_;
  }
  return std::nullopt;
}

std::optional<HttpResponse> RequestBody::ReadCoded(Connection& connection, size_t length) {
  while (length > 0) {
    if (connection.Fetched().empty() && connection.Fetch(std::min(length, kFetch)) <= 0) return CutOff();
    const absl::string_view bytes = connection.Fetched().substr(0, length);
    if (!Decode(bytes)) return error_;
    length -= bytes.size();
    connection.Drop(bytes.size());
  }
  return std::nullopt;
}

std::optional<HttpResponse> RequestBody::ReadChunks(Connection& connection, RequestParser& parser) {
  while (!parser.body_done()) {
    size_t taken = 0;
    if (!connection.Fetched().empty()) {
      auto malformed = parser.ReadChunks(
          connection.Fetched(), [this](absl::string_view bytes) { return Decode(bytes); }, &taken);
      if (malformed) return malformed;
      if (error_) return error_;
      connection.Drop(taken);
    }
    if (taken > 0) continue;
    if (connection.Fetched().size() >= kFetch)
      return HttpError(400, "a chunk's head or the trailers have no end");
    if (connection.Fetch(kFetch) <= 0) return CutOff();
  }
  return std::nullopt;
}

}  // namespace saccade::server
