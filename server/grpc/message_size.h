// How much memory a message takes once it is parsed.
#pragma once

#include <google/protobuf/descriptor.h>

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

// Maximum number of messages within a message, map entries included. No valid request has so many, and each
// takes far more memory than the two bytes that it may have on the wire.
inline constexpr int64_t kMaxNestedMessages = 1 << 16;

// Maximum number of strings and of unknown fields within a message. Each takes an object of its own.
inline constexpr int64_t kMaxStrings = 1 << 18;

// Maximum number of fields of any kind within a message. A packed field is one, so only the elements of
// tensors that a client does not pack may be so many. It bounds the time to read a message.
inline constexpr int64_t kMaxFields = 1 << 22;

// A message that came compressed may have as many messages, strings or fields as bytes of it were sent, and
// in any case so many. Otherwise few bytes would take long: 163 of them may be 65,535 messages.
inline constexpr int64_t kMaxCompressedParts = 256;

// Maximum number of messages, of strings or of fields in `bytes`: `max`, or fewer if they came compressed.
int64_t MaxParts(const BytePieces& bytes, int64_t max);

// INVALID_ARGUMENT that says that a message of `type`, for which `compressed_size` bytes were sent, has more
// than `max` of what `parts` names.
absl::Status TooManyCompressedParts(const google::protobuf::Descriptor& type, size_t compressed_size,
                                    int64_t max, absl::string_view parts);

// Maximum length of a model's name in a request. It is copied many times, into logs, errors and counts. A
// model's has at most 128 bytes; one that is a little too long gets the usual error, NOT_FOUND.
inline constexpr size_t kMaxModelName = 1024;

// An upper estimate of the memory in bytes that protobuf's parser takes for `bytes`, a message of `type`.
// INVALID_ARGUMENT if one of the bounds above is exceeded, or if the bytes are no such message: the parser
// itself reserves up to 50 MB for a string before it finds that the bytes end earlier.
absl::StatusOr<int64_t> ParsedSize(const BytePieces& bytes, const google::protobuf::Descriptor& type);

// INVALID_ARGUMENT that says that bytes are no message of `type`.
absl::Status NoSuchMessage(const google::protobuf::Descriptor& type);

}  // namespace saccade::server
