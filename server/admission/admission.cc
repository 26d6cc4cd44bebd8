#include "server/admission/admission.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Whether `more` fits beside `held` under `bound`.
absl::Status CheckBound(const char* what, const char* flag, int64_t more, int64_t held, int64_t bound) {
  if (more > bound) {
    return absl::InvalidArgumentError(absl::StrCat("the request takes ", more, " ", what, ", more than the ",
                                                   bound, " that the whole server allows (", flag, ")"));
  }
  if (more > bound - held) {
    return absl::ResourceExhaustedError(absl::StrCat("the server is at its bound of ", bound, " ", what,
                                                     " in flight (", flag, "): ", held,
                                                     " are, the request takes ", more, "; try again later"));
  }
  return absl::OkStatus();
}

}  // namespace

Admission::Ticket::Ticket(Ticket&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)), held_(std::exchange(other.held_, {})) {}

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Release();
    admission_ = std::exchange(other.admission_, nullptr);
    held_ = std::exchange(other.held_, {});
  }
  return *this;
}

absl::Status Admission::Ticket::AddPixels(int64_t pixels) {
  if (admission_ == nullptr)
    return absl::FailedPreconditionError("pixels added to a ticket that holds no request");
  if (absl::Status added = admission_->AddPixels(pixels, held_.pixels); !added.ok()) return added;
  held_.pixels += pixels;
  return absl::OkStatus();
}

void Admission::Ticket::Release() {
  if (admission_ == nullptr) return;
  std::exchange(admission_, nullptr)->Return(std::exchange(held_, {}));
}

absl::StatusOr<std::unique_ptr<Admission>> Admission::Create(const AdmissionOptions& options) {
  const std::pair<const char*, int64_t> bounds[] = {
      {"--max-inflight-requests", options.max_inflight_requests},
      {"--max-inflight-bytes", options.max_inflight_bytes},
      {"--max-inflight-pixels", options.max_inflight_pixels},
  };
  for (const auto& [flag, value] : bounds) {
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " is ", value, "; it has to be at least 1"));
    }
  }
  return std::unique_ptr<Admission>(new Admission(options));
}

absl::StatusOr<Admission::Ticket> Admission::Admit(int64_t bytes) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("a request cannot hold ", bytes, " bytes"));
  absl::MutexLock lock(&mutex_);
  if (draining_) {
    return absl::UnavailableError(
        "the server is shutting down and takes no more requests; try another replica");
  }
  absl::Status fits = CheckBound("requests", "--max-inflight-requests", 1, inflight_.requests,
                                 options_.max_inflight_requests);
  if (!fits.ok()) return fits;
  fits = CheckBound("bytes", "--max-inflight-bytes", bytes, inflight_.bytes, options_.max_inflight_bytes);
  if (!fits.ok()) return fits;
  inflight_.requests += 1;
  inflight_.bytes += bytes;
  return Ticket(this, {.requests = 1, .bytes = bytes, .pixels = 0});
}

void Admission::StartDraining() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
}

bool Admission::AwaitIdle(absl::Time deadline, Clock* clock) {
  absl::MutexLock lock(&mutex_);
  auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return inflight_.requests == 0; };
  return clock->AwaitUntil(&mutex_, absl::Condition(&idle), deadline);
}

Inflight Admission::inflight() const {
  absl::MutexLock lock(&mutex_);
  return inflight_;
}

absl::Status Admission::AddPixels(int64_t pixels, int64_t held_by_ticket) {
  if (pixels < 0)
    return absl::InvalidArgumentError(absl::StrCat("a picture cannot hold ", pixels, " pixels"));
  // Several pictures of one request may each be within the bound and never be so together.
  if (held_by_ticket > 0 && pixels > options_.max_inflight_pixels - held_by_ticket) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the request's pictures hold ", held_by_ticket, " pixels and ", pixels, " more, above the ",
        options_.max_inflight_pixels, " that the whole server allows (--max-inflight-pixels)"));
  }
  absl::MutexLock lock(&mutex_);
  absl::Status fits =
      CheckBound("pixels", "--max-inflight-pixels", pixels, inflight_.pixels, options_.max_inflight_pixels);
  if (fits.ok()) inflight_.pixels += pixels;
  return fits;
}

void Admission::Return(const Inflight& held) {
  absl::MutexLock lock(&mutex_);
  inflight_.requests -= held.requests;
  inflight_.bytes -= held.bytes;
  inflight_.pixels -= held.pixels;
}

}  // namespace saccade::server
