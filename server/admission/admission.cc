#include "server/admission/admission.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

// Returns what counts for the server. A nested request counts only its decoded bytes; the outer request's
// ticket holds the rest.
Inflight OfServer(const Inflight& held, bool nested) {
  return nested ? Inflight{.decoded_bytes = held.decoded_bytes} : held;
}

}  // namespace

Admission::Ticket::Ticket(Ticket&& other) noexcept
    : admission_(std::exchange(other.admission_, nullptr)),
      model_(std::exchange(other.model_, nullptr)),
      held_(std::exchange(other.held_, {})),
      nested_(other.nested_) {}

Admission::Ticket& Admission::Ticket::operator=(Ticket&& other) noexcept {
  if (this != &other) {
    Release();
    admission_ = std::exchange(other.admission_, nullptr);
    model_ = std::exchange(other.model_, nullptr);
    held_ = std::exchange(other.held_, {});
    nested_ = other.nested_;
  }
  return *this;
}

absl::Status Admission::Ticket::AddDecodedBytes(int64_t bytes) {
  if (admission_ == nullptr)
    return absl::FailedPreconditionError("decoded bytes added to a ticket that holds no request");
  if (absl::Status added = admission_->AddDecodedBytes(bytes, *this); !added.ok()) return added;
  held_.decoded_bytes += bytes;
  return absl::OkStatus();
}

Admission::Ticket Admission::Ticket::ForAnswer(int64_t bytes) const {
  if (admission_ == nullptr) return {};
  const Inflight held = {.bytes = bytes};
  admission_->Hold(held, model_);
  // The answer of a nested request counts for the server too, because the outer request's ticket does
  // not include it.
  return {admission_, model_, held, /*nested=*/false};
}

void Admission::Ticket::Release() {
  if (admission_ == nullptr) return;
  admission_->Return(*this);
  admission_ = nullptr;
}

absl::StatusOr<std::unique_ptr<Admission>> Admission::Create(const AdmissionOptions& options, Clock* clock) {
  const std::pair<const char*, int64_t> bounds[] = {
      {"--max-inflight-requests", options.max_inflight_requests},
      {"--max-inflight-bytes", options.max_inflight_bytes},
      {"--max-decoded-bytes", options.max_decoded_bytes},
  };
  for (const auto& [flag, value] : bounds) {
    if (value < 1) {
      return absl::InvalidArgumentError(absl::StrCat(flag, " is ", value, "; it has to be at least 1"));
    }
  }
  const ClientRateOptions& clients = options.clients;
  if (!(clients.requests_per_second >= 0)) {
    return absl::InvalidArgumentError(absl::StrCat("--client-requests-per-second is ",
                                                   clients.requests_per_second,
                                                   "; it has to be positive, or 0 for no limit"));
  }
  if (clients.burst > 0 && clients.requests_per_second == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--client-burst is ", clients.burst, " without --client-requests-per-second; set that as well"));
  }
  return std::unique_ptr<Admission>(new Admission(options, clock));
}

Admission::Admission(const AdmissionOptions& options, Clock* clock)
    : clock_(clock),
      server_("", {.requests = options.max_inflight_requests,
                   .bytes = options.max_inflight_bytes,
                   .decoded_bytes = options.max_decoded_bytes}),
      clients_(options.clients) {}

absl::StatusOr<Admission::Ticket> Admission::Admit(const Applicant& applicant) {
  if (applicant.bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a request cannot hold ", applicant.bytes, " bytes"));
  }
  const Inflight wanted = {.requests = 1, .bytes = applicant.bytes};
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  if (draining_ && !applicant.nested) {
    return absl::UnavailableError(
        "the server is shutting down and accepts no more requests; try another replica");
  }
  if (!applicant.nested) {
    if (absl::Status rate = clients_.Take(applicant.client, now); !rate.ok()) return rate;
  }
  Load* const model = LoadOf(applicant);
  // Not attached to `this`: if Take() fails, the destructor of an attached ticket would lock `mutex_`, which
  // is held here.
  Ticket ticket(nullptr, model, {}, applicant.nested);
  if (absl::Status taken = Take(wanted, ticket, now); !taken.ok()) return taken;
  return Ticket(this, model, wanted, applicant.nested);
}

Load* Admission::LoadOf(const Applicant& applicant) {
  const Inflight& max = applicant.model_bounds;
  if (max.requests == 0 && max.bytes == 0 && max.decoded_bytes == 0) return nullptr;
  auto found = models_.find(applicant.model);
  if (found == models_.end()) {
    found = models_.try_emplace(std::string(applicant.model), applicant.model, max).first;
  }
  found->second.SetMax(max);
  return &found->second;
}

absl::Status Admission::Take(const Inflight& more, const Ticket& ticket, absl::Time now) {
  const Inflight of_server = OfServer(more, ticket.nested_);
  absl::Status fits = server_.Check(of_server, OfServer(ticket.held_, ticket.nested_), now);
  if (!fits.ok()) return fits;
  if (Load* const model = ticket.model_; model != nullptr) {
    fits = model->Check(more, ticket.held_, now);
    if (!fits.ok()) return fits;
    model->Add(more, now);
  }
  server_.Add(of_server, now);
  return absl::OkStatus();
}

void Admission::StartDraining() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
}

bool Admission::AwaitIdle(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return server_.held().requests == 0; };
  return clock_->AwaitUntil(&mutex_, absl::Condition(&idle), deadline);
}

Inflight Admission::inflight() const {
  absl::MutexLock lock(&mutex_);
  return server_.held();
}

absl::Status Admission::AddDecodedBytes(int64_t bytes, const Ticket& ticket) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("cannot add ", bytes, " decoded bytes"));
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  return Take({.decoded_bytes = bytes}, ticket, now);
}

void Admission::Hold(const Inflight& held, Load* model) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  server_.Add(held, now);
  if (model != nullptr) model->Add(held, now);
}

void Admission::Return(const Ticket& ticket) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  server_.Return(OfServer(ticket.held_, ticket.nested_), now);
  if (ticket.model_ != nullptr) ticket.model_->Return(ticket.held_, now);
}

}  // namespace saccade::server
