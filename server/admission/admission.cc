#include "server/admission/admission.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/core/memory_reserve.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"

namespace saccade::server {

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

absl::Status Admission::Ticket::AddDecodedBytes(int64_t bytes) {
  if (admission_ == nullptr)
    return absl::FailedPreconditionError("decoded bytes added to a ticket that holds no request");
  if (absl::Status added = admission_->AddDecodedBytes(bytes, held_); !added.ok()) return added;
  held_.of_server.decoded_bytes += bytes;
  held_.of_model.decoded_bytes += bytes;
  return absl::OkStatus();
}

Admission::Ticket Admission::Ticket::ForAnswer(int64_t bytes) const {
  if (admission_ == nullptr) return {};
  // The answer of a nested request counts for the server too, because the outer request's ticket does
  // not include it.
  Holding answer = {.of_server = {.bytes = bytes},
                    .client = held_.client,
                    .model = held_.model,
                    .of_model = {.bytes = bytes}};
  admission_->AddAnswer(answer);
  return Ticket(admission_, std::move(answer));
}

void Admission::Ticket::ReturnRequest() {
  if (admission_ != nullptr && !held_.answering) admission_->ReturnRequest(held_);
}

void Admission::Ticket::Release() {
  if (admission_ == nullptr) return;
  admission_->Return(held_);
  admission_ = nullptr;
}

absl::StatusOr<std::unique_ptr<Admission>> Admission::Create(const AdmissionOptions& options, Clock* clock) {
  const std::pair<const char*, int64_t> bounds[] = {
      {"--max-inflight-requests", options.max_inflight_requests},
      {"--max-inflight-bytes", options.max_inflight_bytes},
      {"--max-message-bytes", options.max_message_bytes},
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
      client_rates_(options.clients),
      client_shares_({.requests = options.max_inflight_requests,
                      .bytes = options.max_inflight_bytes,
                      .message_bytes = options.max_message_bytes,
                      .decoded_bytes = options.max_decoded_bytes}) {}

absl::StatusOr<Admission::Ticket> Admission::Admit(const Applicant& applicant) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  auto wanted = Wanted(applicant, now);
  if (!wanted.ok()) return wanted.status();
  Add(*wanted, now);
  return Ticket(this, *std::move(wanted));
}

absl::Status Admission::CheckAdmission(const Applicant& applicant) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  return Wanted(applicant, now).status();
}

absl::StatusOr<Admission::Holding> Admission::Wanted(const Applicant& applicant, absl::Time now) {
  if (applicant.bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a request cannot hold ", applicant.bytes, " bytes"));
  }
  // A charge may be larger than the input, because it covers the whole message.
  const int64_t charged = std::clamp(applicant.charged_bytes, int64_t{0}, applicant.bytes);
  if (draining_ && !applicant.nested) {
    return absl::UnavailableError(
        "the server is shutting down and accepts no more requests; try another replica");
  }
  if (!applicant.nested && !RestoreMemoryReserve()) {
    absl::Status refused = absl::ResourceExhaustedError(
        "the system has no memory left for the daemon; try again later, or give it more memory or lower "
        "--max-inflight-bytes and --max-decoded-bytes");
    SetShedReason(refused, ShedReason::kBytes);
    SetRetryAfter(refused, server_.TimeToRetry(now));
    return refused;
  }
  Holding wanted = {.client = std::string(applicant.client),
                    .model = LoadOf(applicant),
                    .of_model = {.requests = 1, .bytes = applicant.bytes}};
  Holding own = {.client = wanted.client};
  if (!applicant.nested) {
    wanted.of_server = {.requests = 1, .bytes = applicant.bytes - charged};
    own.of_server.bytes = charged;
  }
  client_shares_.NoteArrival(applicant.client, now);
  if (absl::Status fits = Check(wanted, own, now); !fits.ok()) return fits;
  return wanted;
}

absl::Status Admission::CountRequest(absl::string_view client) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  if (client_quotas_.HasRate(client)) return client_quotas_.TakeFromRate(client, now);
  return client_rates_.Take(client, now);
}

void Admission::SetClientQuotas(const ClientQuotaTable& table) {
  absl::MutexLock lock(&mutex_);
  client_quotas_.Set(table);
}

absl::StatusOr<ByteCharge> Admission::Charge(absl::string_view client, int64_t bytes) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("cannot charge ", bytes, " bytes"));
  const Inflight more = {.bytes = bytes};
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  if (absl::Status fits = server_.Check(more, {}, now); !fits.ok()) return fits;
  if (absl::Status fits = client_shares_.Check(client, more, {}, now, server_.TimeToRetry(now)); !fits.ok())
    return fits;
  client_shares_.Add(client, more);
  try {
    ByteCharge charge = Issue(this, client, bytes);
    server_.Add(more, now);
    return charge;
  } catch (...) {
    client_shares_.Return(client, more);
    throw;
  }
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

absl::Status Admission::Check(const Holding& more, const Holding& own, absl::Time now) {
  if (absl::Status fits = server_.Check(more.of_server, own.of_server, now); !fits.ok()) return fits;
  const absl::Duration retry_after = server_.TimeToRetry(now);
  Inflight shared = more.of_server;
  // A client with a quota of its own has that in place of a share.
  if (client_quotas_.max_requests(more.client) > 0) shared.requests = 0;
  absl::Status fits = client_shares_.Check(more.client, shared, own.of_server, now, retry_after);
  if (!fits.ok()) return fits;
  absl::Status quota = client_quotas_.Check(more.client, more.of_server.requests, retry_after);
  if (!quota.ok()) return quota;
  if (more.model == nullptr) return absl::OkStatus();
  return more.model->Check(more.of_model, own.of_model, now);
}

void Admission::Add(const Holding& more, absl::Time now) {
  // What may find no memory comes first, so that all or nothing is counted.
  client_shares_.Add(more.client, more.of_server);
  try {
    client_quotas_.Add(more.client, more.of_server.requests);
  } catch (...) {
    client_shares_.Return(more.client, more.of_server);
    throw;
  }
  server_.Add(more.of_server, now);
  if (more.model != nullptr) more.model->Add(more.of_model, now);
}

void Admission::StartDraining() {
  absl::MutexLock lock(&mutex_);
  draining_ = true;
}

bool Admission::draining() const {
  absl::MutexLock lock(&mutex_);
  return draining_;
}

bool Admission::AwaitIdle(absl::Time deadline) {
  absl::MutexLock lock(&mutex_);
  auto idle = [this]()
                  ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return server_.held().requests + answering_ == 0; };
  return clock_->AwaitUntil(&mutex_, absl::Condition(&idle), deadline);
}

Inflight Admission::inflight() const {
  absl::MutexLock lock(&mutex_);
  return server_.held();
}

absl::Status Admission::AddDecodedBytes(int64_t bytes, const Holding& own) {
  if (bytes < 0) return absl::InvalidArgumentError(absl::StrCat("cannot add ", bytes, " decoded bytes"));
  // Most requests without pictures decode nothing.
  if (bytes == 0) return absl::OkStatus();
  const Inflight decoded = {.decoded_bytes = bytes};
  const Holding more = {.of_server = decoded, .client = own.client, .model = own.model, .of_model = decoded};
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  client_shares_.NoteArrival(own.client, now);
  absl::Status fits = Check(more, own, now);
  if (fits.ok()) Add(more, now);
  return fits;
}

void Admission::AddAnswer(const Holding& answer) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  Add(answer, now);
}

void Admission::Return(const Holding& held) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  server_.Return(held.of_server, now);
  client_shares_.Return(held.client, held.of_server);
  client_quotas_.Return(held.client, held.of_server.requests);
  if (held.model != nullptr) held.model->Return(held.of_model, now);
  if (held.answering) --answering_;
}

void Admission::ReturnRequest(Holding& held) {
  const absl::Time now = clock_->Now();
  const auto take = [](Inflight& amounts) {
    return Inflight{.requests = std::exchange(amounts.requests, 0),
                    .decoded_bytes = std::exchange(amounts.decoded_bytes, 0)};
  };
  absl::MutexLock lock(&mutex_);
  client_quotas_.Return(held.client, held.of_server.requests);
  const Inflight taken = take(held.of_server);
  client_shares_.Return(held.client, taken);
  server_.Return(taken, now);
  if (held.model != nullptr) held.model->Return(take(held.of_model), now);
  held.answering = true;
  ++answering_;
}

void Admission::Return(absl::string_view client, int64_t bytes) {
  const absl::Time now = clock_->Now();
  absl::MutexLock lock(&mutex_);
  server_.Return({.bytes = bytes}, now);
  client_shares_.Return(client, {.bytes = bytes});
}

}  // namespace saccade::server
