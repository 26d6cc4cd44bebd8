// Collects the body of a request in memory, and decodes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/http/charged_buffer.h"
#include "server/http/content_coding.h"
#include "server/http/http_message.h"
#include "server/http/http_service.h"
#include "server/net/refusal.h"

namespace saccade::server {

// Not thread-safe; may be moved on between threads.
class RequestBody {
 public:
  struct Refused {
    HttpResponse response;
    // Nullopt if the client has sent bytes that are not of the coding.
    std::optional<Refusal> reason;
  };

  // `options` must outlive the body's reading and decoding. `client` as in ByteLedger.
  RequestBody(const HttpService::Options* options, const std::string& client, ContentCoding coding);

  // Charges a body of an announced length.
  std::optional<Refused> Announce(uint64_t length);
  // Takes bytes of the body. If their number was not announced, they are charged here.
  std::optional<Refused> Append(absl::string_view bytes);
  // Charges more room, if all of it is used: as much again as there was.
  std::optional<Refused> Expand();
  // How many bytes of the body may come, counted from its beginning: as many as are charged, and one more at
  // the bound, to notice bodies that are too large.
  uint64_t allowed() const;

  // Decodes a part of the body, which is complete: stops after about `max` decoded or `max` read bytes.
  // decoded() says whether all is decoded.
  std::optional<Refused> Decode(size_t max);
  bool decoded() const { return !is_coded_ || is_decoded_; }

  // The decoded body. REQUIRES: decoded().
  absl::string_view bytes() const { return is_coded_ ? decoded_.bytes() : received_.bytes(); }

 private:
  std::optional<Refused> Grow(ChargedBuffer& buffer, size_t size, size_t max);
  std::optional<Refused> Reserve(ChargedBuffer& buffer, size_t capacity);

  std::optional<Refused> BeginDecoding();
  // How many bytes the decoded body may have.
  size_t MaxDecoded() const;
  Refused DecodedTooLarge() const;

  const HttpService::Options& options_;
  const std::string client_;
  const ContentCoding coding_;
  const bool is_coded_;
  ChargedBuffer received_;
  ChargedBuffer decoded_;
  // While the body is decoded, which begins when all of it has come.
  std::optional<ContentDecoder> decoder_;
  ByteCharge decoder_charge_;
  bool is_decoded_ = false;
  // How much of received_ is decoded.
  size_t position_ = 0;
};

}  // namespace saccade::server
