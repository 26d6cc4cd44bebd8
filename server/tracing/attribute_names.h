// Names of span attributes: those of OpenTelemetry's semantic conventions where they exist (they still
// change), and our own.
#pragma once

#include <string_view>

namespace saccade::server::attribute {

inline constexpr std::string_view kRpcSystem = "rpc.system.name";
inline constexpr std::string_view kRpcMethod = "rpc.method";
inline constexpr std::string_view kRpcStatus = "rpc.response.status_code";
inline constexpr std::string_view kErrorType = "error.type";
inline constexpr std::string_view kClientAddress = "client.address";
inline constexpr std::string_view kHttpMethod = "http.request.method";
inline constexpr std::string_view kHttpRoute = "http.route";
inline constexpr std::string_view kHttpStatus = "http.response.status_code";
inline constexpr std::string_view kModelName = "saccade.model.name";
inline constexpr std::string_view kModelVersion = "saccade.model.version";
inline constexpr std::string_view kRequestId = "saccade.request.id";
inline constexpr std::string_view kRequestBytes = "saccade.request.size";
inline constexpr std::string_view kResponseBytes = "saccade.response.size";
// Items and calls that shared a forward pass.
inline constexpr std::string_view kBatchSize = "saccade.batch.size";
inline constexpr std::string_view kBatchRequests = "saccade.batch.requests";

}  // namespace saccade::server::attribute
