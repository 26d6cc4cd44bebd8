// What a model has done since its daemon loaded it.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "absl/time/time.h"

namespace saccade::client {

// Something that happened so often, and took so long in all.
struct Spent {
  int64_t count = 0;
  absl::Duration time = {};

  // Zero if it never happened.
  absl::Duration Mean() const { return count > 0 ? time / count : absl::ZeroDuration(); }
};

// Only grows: rates are differences of two answers. What is in flight and the latencies' distribution are
// told over HTTP alone (GET /v1/load).
struct ModelStatistics {
  std::string model;
  int64_t version = 0;
  // Of requests, from their arrival to their end.
  Spent answered = {};
  Spent failed = {};
  // Of answered requests, stage by stage.
  Spent decode = {};
  Spent queue = {};
  Spent infer = {};
  Spent encode = {};
  int64_t pictures = 0;
  // Forward passes, in all and by how many pictures they had.
  int64_t passes = 0;
  std::map<int64_t, Spent> passes_by_batch_size = {};

  // Of a pass; 0 before the first.
  double MeanBatchSize() const {
    return passes > 0 ? static_cast<double>(pictures) / static_cast<double>(passes) : 0;
  }
};

}  // namespace saccade::client
