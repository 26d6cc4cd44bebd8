// Unary methods whose request and response are protobuf messages of moderate size.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "server/core/byte_pieces.h"
#include "server/grpc/call.h"
#include "server/grpc/serialize_message.h"
#include "server/grpc/unary.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/message_bytes.h"

namespace saccade::server {

// A method whose function answers now or later, through `call`. The request is valid during the function. A
// request that cannot be parsed is answered with INVALID_ARGUMENT.
template <typename Request>
CallMethod ParsedMethod(
    std::string path, std::function<void(std::shared_ptr<UnaryCall> call, const Request& request)> function) {
  return UnaryMethod(std::move(path), std::string(Request::descriptor()->full_name()),
                     [function = std::move(function)](std::shared_ptr<UnaryCall> call, BytePieces received) {
                       Request request;
                       if (const auto parsed = ParseMessage(received, &request); !parsed.ok()) {
                         call->Fail(ToCallEnd(parsed.status()));
                       } else {
                         function(std::move(call), request);
                       }
                     });
}

// A method that is answered at once. `answer` fills in the response, or returns an error.
template <typename Request, typename Response>
CallMethod AnsweredMethod(
    std::string path,
    std::function<absl::Status(const CallStart& start, const Request& request, Response* response)> answer) {
  return ParsedMethod<Request>(
      std::move(path),
      [answer = std::move(answer)](const std::shared_ptr<UnaryCall>& call, const Request& request) {
        Response response;
        if (const absl::Status status = answer(call->start(), request, &response); status.ok()) {
          call->Respond(SerializeMessage(response));
        } else {
          call->Fail(ToCallEnd(status));
        }
      });
}

}  // namespace saccade::server
