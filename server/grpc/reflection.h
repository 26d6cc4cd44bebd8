// grpc.reflection.v1 and v1alpha: clients such as grpcurl ask for the services and their messages.
#pragma once

#include <string>
#include <vector>

#include "server/grpc/call.h"

namespace saccade::server {

// `services` are full names, "saccade.v1.Vision"; their descriptors must be linked into the program. Those of
// reflection itself are added.
std::vector<CallMethod> ReflectionMethods(std::vector<std::string> services);

}  // namespace saccade::server
