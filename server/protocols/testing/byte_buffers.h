// Messages as gRPC delivers them, for tests.
#pragma once

#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/slice.h>

#include <algorithm>
#include <string>
#include <vector>

namespace saccade::server::testing {

// `bytes` in slices of at most `max` bytes.
inline grpc::ByteBuffer InSlices(const std::string& bytes, size_t max) {
  std::vector<grpc::Slice> slices;
  for (size_t begin = 0; begin < bytes.size(); begin += max) {
    slices.emplace_back(bytes.data() + begin, std::min(max, bytes.size() - begin));
  }
  return {slices.data(), slices.size()};
}

inline grpc::ByteBuffer InSlices(const google::protobuf::MessageLite& message, size_t max) {
  return InSlices(message.SerializeAsString(), max);
}

inline std::string Joined(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  buffer.Dump(&slices);
  std::string bytes;
  for (const grpc::Slice& slice : slices) bytes.append(slice.begin(), slice.end());
  return bytes;
}

}  // namespace saccade::server::testing
