// Unary methods whose request and response are protobuf messages of moderate size.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "server/core/byte_pieces.h"
#include "server/grpc/call.h"
#include "server/grpc/serialize_message.h"
#include "server/grpc/unary.h"
#include "server/net/work_pool.h"
#include "server/protocols/grpc_status.h"
#include "server/protocols/message_bytes.h"

namespace saccade::server {

// Such requests have names and numbers; only a configuration may be longer. They are parsed on the network's
// thread.
inline constexpr size_t kMaxQuestionBytes = size_t{16} << 10;

inline absl::Status CheckQuestionSize(size_t bytes, size_t max) {
  if (bytes <= max) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the request has ", bytes, " bytes; this method accepts at most ", max));
}

// A method whose function answers now or later, through `call`. The request is valid during the function. A
// request that cannot be parsed, or has more than `max_bytes`, is answered with INVALID_ARGUMENT.
template <typename Request>
CallMethod ParsedMethod(std::string path,
                        std::function<void(std::shared_ptr<UnaryCall> call, const Request& request)> function,
                        size_t max_bytes = kMaxQuestionBytes) {
  CallMethod method = UnaryMethod(std::move(path), std::string(Request::descriptor()->full_name()),
                                  [function = std::move(function), max_bytes](std::shared_ptr<UnaryCall> call,
                                                                              const BytePieces& received) {
                                    Request request;
                                    absl::Status read = CheckQuestionSize(received.size(), max_bytes);
                                    if (read.ok()) read = ParseMessage(received, &request).status();
                                    if (!read.ok()) {
                                      call->Fail(ToCallEnd(read));
                                    } else {
                                      function(std::move(call), request);
                                    }
                                  });
  method.max_growth_bytes = static_cast<int64_t>(max_bytes);
  return method;
}

// A method that is answered at once. `answer` fills in the response, or returns an error. It runs on `pool`
// if that is not null: for answers that tell of all models, which take long to make.
template <typename Request, typename Response>
CallMethod AnsweredMethod(
    std::string path,
    std::function<absl::Status(const CallStart& start, const Request& request, Response* response)> answer,
    WorkPool* pool = nullptr) {
  const auto make = [answer = std::move(answer)](UnaryCall& call, const Request& request) {
    Response response;
    if (const absl::Status status = answer(call.start(), request, &response); status.ok()) {
      call.Respond(SerializeMessage(response));
    } else {
      call.Fail(ToCallEnd(status));
    }
  };
  return ParsedMethod<Request>(
      std::move(path), [make, pool](const std::shared_ptr<UnaryCall>& call, const Request& request) {
        if (pool == nullptr) return make(*call, request);
        if (pool->Submit(call->start().client, [make, call, request] { make(*call, request); })) return;
        call->Fail(ToCallEnd(
            absl::ResourceExhaustedError("too many calls wait for such an answer; try again later")));
      });
}

}  // namespace saccade::server
