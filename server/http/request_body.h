// Reads a request's body into memory, whichever way it comes, and never more than there is room for.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "server/http/connection.h"
#include "server/http/content_coding.h"
#include "server/http/request_parser.h"

namespace saccade::server {

// What all bodies in memory may take together. Thread-safe.
class BodyRoom {
 public:
  explicit BodyRoom(size_t bytes) : left_(bytes) {}

  // False, and takes nothing, if there is not so much.
  bool Take(size_t bytes);
  void Give(size_t bytes) { left_ += bytes; }

 private:
  std::atomic<size_t> left_;
};

class RequestBody {
 public:
  // `max` bounds it alone, decoded.
  RequestBody(std::shared_ptr<BodyRoom> room, size_t max) : room_(std::move(room)), max_(max) {}
  ~RequestBody() { room_->Give(taken_); }

  RequestBody(const RequestBody&) = delete;
  RequestBody& operator=(const RequestBody&) = delete;

  // Reads and decodes it. The error that answers a body that is malformed, too large, too slow, or cut off:
  // after one, what the client sends next is no request. REQUIRES: called once, with the head that `parser`
  // has read.
  std::optional<HttpResponse> Read(Connection& connection, RequestParser& parser, ContentCoding coding);

  absl::string_view bytes() const { return {data_.get(), size_}; }

 private:
  std::optional<HttpResponse> ReadPlain(Connection& connection, size_t length);
  std::optional<HttpResponse> ReadCoded(Connection& connection, size_t length);
  std::optional<HttpResponse> ReadChunks(Connection& connection, RequestParser& parser);

  // Each returns whether there is more to come; if not, error_ says why.
  bool Decode(absl::string_view bytes);
  bool Append(absl::string_view bytes);
  bool Reserve(size_t size);
  bool Charge(size_t size);

  const std::shared_ptr<BodyRoom> room_;
  const size_t max_;
  std::optional<Decoder> decoder_;
  std::optional<HttpResponse> error_;
  // Not filled with anything before: a client that only says that much is to come must not cost that much.
  std::unique_ptr<char[]> data_;
  size_t size_ = 0;
  size_t capacity_ = 0;
  size_t taken_ = 0;
};

// Says that `size` bytes are more than `max`.
HttpResponse BodyTooLarge(absl::string_view size, size_t max);

}  // namespace saccade::server
