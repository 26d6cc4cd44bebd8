// Protobuf messages as Triton writes them in JSON.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace saccade::server {

// Fields by the names that the .proto gives them: numbers as numbers, also those of 64 bits, which protobuf
// itself would quote; enumerations by name; what has its default too, unless it is a message, or one of a
// oneof, that is not set. What is not UTF-8 is replaced.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace saccade::server
