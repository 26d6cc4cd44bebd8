// The memory of a large answer, counted by admission as in flight until the answer is sent.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "server/admission/admission.h"

namespace saccade::server {

// Answers of models from this size on are charged. The connection's windows and buffers hold most of a
// smaller one, even if the client does not read.
inline constexpr int64_t kLargeAnswer = 64 << 10;

// Immutable. Shared by the objects that hold the answer; the last of them destroys it, on any thread. A
// client that does not read its answer thus keeps the memory counted. The admission must outlive it.
class AnswerCharge {
 public:
  explicit AnswerCharge(Admission::Ticket ticket) : ticket_(std::move(ticket)) {}
  // For an answer that is put together from others. `parts` may contain null.
  explicit AnswerCharge(std::vector<std::shared_ptr<const AnswerCharge>> parts) : parts_(std::move(parts)) {}

 private:
  const Admission::Ticket ticket_;
  const std::vector<std::shared_ptr<const AnswerCharge>> parts_;
};

// The charge of an answer of `bytes` bytes to the client of `ticket`; null for a small answer.
inline std::shared_ptr<const AnswerCharge> ChargeLargeAnswer(const Admission::Ticket& ticket, int64_t bytes) {
  if (bytes < kLargeAnswer) return nullptr;
  return std::make_shared<const AnswerCharge>(ticket.ForAnswer(bytes));
}

}  // namespace saccade::server
