#include "server/protocols/vision/crop_answer.h"

#include "server/protocols/vision/results.h"

namespace saccade::server {

CropAnswer::CropAnswer(int64_t max_bytes, int64_t around)
    : max_bytes_(max_bytes), bytes_(around + kMaxTimings) {}

absl::Status CropAnswer::Add(int64_t bytes, const Admission::Ticket& ticket) {
  if (absl::Status fits = CheckDetectionsSize(bytes_ + bytes, max_bytes_); !fits.ok()) return fits;
  bytes_ += bytes;
  uncharged_ += bytes;
  if (uncharged_ < kLargeAnswer) return absl::OkStatus();
  charges_.push_back(ChargeLargeAnswer(ticket, uncharged_));
  uncharged_ = 0;
  return absl::OkStatus();
}

std::shared_ptr<const AnswerCharge> CropAnswer::Finish(int64_t bytes, const Admission::Ticket& ticket) {
  // First, so that no byte is charged twice.
  charges_.clear();
  return ChargeLargeAnswer(ticket, bytes);
}

}  // namespace saccade::server
