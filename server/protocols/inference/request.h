// A ModelInferRequest as received, whose tensors' bytes stay in the received message's memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "inference/grpc_service.pb.h"
#include "server/core/byte_ledger.h"
#include "server/core/byte_pieces.h"

namespace saccade::server {

struct InferenceRequest {
  // More inputs than any model has. Further ones are only counted.
  static constexpr int64_t kMaxRaws = 1024;

  // All fields except raw_input_contents.
  inference::ModelInferRequest fields;
  // The message as received; its owner keeps the memory that `raws` refer to.
  BytePieces received;
  // The first kMaxRaws entries of raw_input_contents, and the number of all entries.
  std::vector<BytePieces> raws;
  int64_t raw_count = 0;
  // For `fields`, as far as they take more memory than the message.
  ByteCharge charge;
};

// INVALID_ARGUMENT if `bytes` are not a ModelInferRequest; else the errors of `ledger`, which may be null.
// REQUIRES: `request` is newly constructed.
absl::Status ReadInferenceRequest(BytePieces bytes, InferenceRequest& request, ByteLedger* ledger = nullptr,
                                  absl::string_view client = "");

// How many bytes are gone through to read the ModelInferRequest `message`: all but raw_input_contents. All of
// them if an input may have the type BYTES, whose elements are split. If `may_share`, SIZE_MAX if an input
// or output may be in shared memory, because a small message may name large tensors. Looks at no message that
// is small enough to be read here, unless `may_share`; of others at the first fields, and assumes the worst
// of the rest. If `is_captured`, a large message counts as a whole, because the capture may copy it.
size_t BytesToRead(const BytePieces& message, bool may_share, bool is_captured);

// A message with model_name, model_version and id of the ModelInferRequest `message`, as far as those come
// first, as clients send them. Empty if they are not valid. Takes no longer if the message is large.
inference::ModelInferRequest NamesOf(const BytePieces& message);

}  // namespace saccade::server
