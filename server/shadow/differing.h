// The requests whose answers differ most, with the pictures that were sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "server/core/trace_id.h"

namespace saccade::server {

// A compared request whose answers do not agree.
struct Disagreement {
  // As the client named the request; may be empty.
  std::string request = {};
  // 0 if the request is not sampled.
  TraceId trace = {};
  absl::Time at = absl::UnixEpoch();
  // Nullopt if the answers cannot be measured.
  std::optional<double> difference = std::nullopt;
  // The shadow version's error; empty if it answered.
  std::string error = {};
  // Names it among those that Differing keeps, from 1.
  int64_t number = 0;
  // The file that the client sent; null if it is not kept.
  std::shared_ptr<const std::string> picture = nullptr;
};

// Not thread-safe.
class Differing {
 public:
  static constexpr size_t kMax = 16;
  // A larger picture is not kept, so that all of them take at most 8 MiB.
  static constexpr size_t kMaxPictureBytes = size_t{512} << 10;

  // Keeps the request if it is among those that differ most. Errors and answers that cannot be measured come
  // first; of requests that differ as much, the earlier is kept.
  void Add(Disagreement found);
  // Those that differ most come first.
  const std::vector<Disagreement>& worst() const { return worst_; }

 private:
  std::vector<Disagreement> worst_;
  int64_t added_ = 0;
};

}  // namespace saccade::server
