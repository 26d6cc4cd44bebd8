// The service of echo.proto, on calls.
#pragma once

#include <vector>

#include "server/grpc/call.h"

namespace saccade::server {

// Metadata whose name begins with "x-echo" comes back as trailers. Unary calls are answered on threads of
// their own, whose ends the service's users need not await: they end when the call is answered.
std::vector<CallMethod> EchoMethods();

}  // namespace saccade::server
