// The size of an answer that grows with each crop, and its charge.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "server/admission/admission.h"
#include "server/engine/answer_charge.h"

namespace saccade::server {

// Not thread-safe.
class CropAnswer {
 public:
  // `max_bytes` bounds the answer together with `around`, the size of the message around it.
  CropAnswer(int64_t max_bytes, int64_t around);

  // Counts bytes before they are added to the answer, and charges them to the client of `ticket` whenever
  // there are as many as in a large answer. RESOURCE_EXHAUSTED, as for CheckSize(), if the answer would be
  // too large.
  absl::Status Add(int64_t bytes, const Admission::Ticket& ticket);

  // Returns the charge of the finished answer, of `bytes` bytes, in place of those of its parts. Null for a
  // small answer.
  std::shared_ptr<const AnswerCharge> Finish(int64_t bytes, const Admission::Ticket& ticket);

 private:
  const int64_t max_bytes_;
  int64_t bytes_;
  int64_t uncharged_ = 0;
  std::vector<std::shared_ptr<const AnswerCharge>> charges_;
};

}  // namespace saccade::server
