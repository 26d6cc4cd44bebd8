// A call and its answer as they went over the network, with what is known of how it was computed.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/core/served_by.h"

namespace saccade::server {

struct CapturedCall {
  using Headers = std::vector<std::pair<std::string, std::string>>;

  // "grpc" or "http".
  std::string transport;
  // gRPC: "saccade.v1.Vision/Predict". HTTP: "/v1/predict?threshold=0.5", the path and query as sent.
  std::string target;
  // Those that describe the bodies, such as content-type. None that says who called.
  Headers headers;
  Headers answer_headers;
  std::string model;
  // The request's own id.
  std::string id;
  absl::Time arrival;
  absl::Time ended;
  absl::Status status;
  // 0 for gRPC.
  int http_status = 0;
  ServedBy served;
  // A message of gRPC without its length, or the body. Empty if pixels are not captured; the sizes are those
  // of the whole.
  std::string request;
  std::string answer;
  int64_t request_bytes = 0;
  int64_t answer_bytes = 0;

  // Memory that the call takes while it waits to be written.
  int64_t held_bytes() const {
    constexpr int64_t kBeside = 1024;
    size_t bytes =
        request.size() + answer.size() + target.size() + model.size() + id.size() + status.message().size();
    for (const Headers* all : {&headers, &answer_headers}) {
      for (const auto& [name, value] : *all)
        bytes += sizeof(Headers::value_type) + name.size() + value.size();
    }
    return static_cast<int64_t>(bytes) + kBeside;
  }
};

}  // namespace saccade::server
