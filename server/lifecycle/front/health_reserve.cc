#include "server/lifecycle/front/health_reserve.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

struct HealthPath {
  absl::string_view path;
  HealthCall call;
};
constexpr HealthPath kHealthPaths[] = {
    {"/grpc.health.v1.Health/Check", HealthCall::kCheck},
    {"/grpc.health.v1.Health/Watch", HealthCall::kWatch},
    {"/inference.GRPCInferenceService/ServerLive", HealthCall::kCheck},
    {"/inference.GRPCInferenceService/ServerReady", HealthCall::kCheck},
    {"/v2/health/live", HealthCall::kCheck},
    {"/v2/health/ready", HealthCall::kCheck},
};

CallReserve::Options ChecksOptions(const char* over) {
  return {.max_calls = HealthReserve::kMaxHealthChecks,
          .max_calls_per_client = HealthReserve::kMaxHealthChecksPerClient,
          .bytes_per_call = HealthReserve::kHealthCallBytes,
          .calls = absl::StrCat("health checks over ", over, " beyond --max-inflight-bytes"),
          .flag = "",
          .flag_per_client = "",
          .advice = "send each check completely at once, or ask the metrics port"};
}

CallReserve::Options WatchesOptions(const HealthReserve::Options& options) {
  return {.max_calls = options.max_watches,
          .max_calls_per_client = options.max_watches_per_client,
          .bytes_per_call = HealthReserve::kHealthCallBytes,
          .calls = "health watches",
          .flag = "--max-health-watches",
          .flag_per_client = "--max-health-watches-per-client",
          .advice =
              "--max-inflight-bytes has no room for more; end some of them, or ask with Check, which has "
              "places of its own"};
}

}  // namespace

HealthCall HealthCallOf(absl::string_view path) {
  for (const HealthPath& known : kHealthPaths) {
    if (path == known.path) return known.call;
  }
  return HealthCall::kNone;
}

HealthReserve::HealthReserve(ByteLedger* ledger, const Options& options)
    : ledger_(ledger),
      grpc_checks_(ChecksOptions("gRPC")),
      rest_checks_(ChecksOptions("REST")),
      watches_(WatchesOptions(options)) {}

RequestCharge HealthReserve::Charge(absl::string_view client, const RequestHead& head, int64_t bytes) {
  const HealthCall call = HealthCallOf(head.path);
  if (call == HealthCall::kWatch) return ChargeWatch(client, bytes);
  RequestCharge charge{ledger_->Charge(client, bytes)};
  const bool is_rest = absl::StartsWith(head.path, "/v2/");
  // A probe over REST has no body, which could take long to come.
  const bool has_rest_body = head.has_body && is_rest;
  if (call == HealthCall::kNone || has_rest_body || !absl::IsResourceExhausted(charge.memory.status()))
    return charge;
  CallReserve& places = is_rest ? rest_checks_ : grpc_checks_;
  return {places.Charge(client, bytes), Refusal::kHealthChecks, kMaxCheckWait};
}

RequestCharge HealthReserve::ChargeWatch(absl::string_view client, int64_t bytes) {
  RequestCharge charge{watches_.Charge(client, bytes), Refusal::kHealthWatches};
  if (!absl::IsResourceExhausted(charge.memory.status())) return charge;
  auto of_ledger = ledger_->Charge(client, bytes);
  if (of_ledger.ok()) charge.memory = std::move(of_ledger);
  return charge;
}

}  // namespace saccade::server
