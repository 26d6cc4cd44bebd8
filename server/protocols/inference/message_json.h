// Converts protobuf messages to JSON like Triton.
#pragma once

#include <google/protobuf/message.h>

#include <string>

namespace saccade::server {

// Fields have the names of the .proto file. Numbers are numbers, including 64-bit ones, which protobuf would
// quote; enumerations are names. Fields with default values are included, except unset messages and unset
// members of a oneof. Invalid UTF-8 is replaced.
std::string ToJson(const google::protobuf::Message& message);

}  // namespace saccade::server
