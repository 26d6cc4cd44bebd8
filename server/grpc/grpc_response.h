// Writes a call's response to its exchange.
#pragma once

#include "absl/status/status.h"
#include "server/core/byte_pieces.h"
#include "server/grpc/call.h"
#include "server/grpc/grpc_web.h"
#include "server/grpc/message_memory.h"
#include "server/http/exchange.h"

namespace saccade::server {

// Loop's thread only.
class GrpcResponse {
 public:
  explicit GrpcResponse(GrpcForm form) : form_(form) {}

  // Sends a message, without copying it unless the form is kWebText: then its text is charged to `account`,
  // and an error means that the charge was refused and nothing was sent.
  absl::Status SendMessage(Exchange* exchange, BytePieces message, const MessageAccount& account);
  // Completes the response. Without a message before it, HTTP/2 needs one frame for all. `http_status` is for
  // such responses.
  void SendEnd(Exchange* exchange, const CallEnd& end, int http_status = 200);

 private:
  HttpHeaders Head() const;

  const GrpcForm form_;
  bool head_sent_ = false;
};

}  // namespace saccade::server
