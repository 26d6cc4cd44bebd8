#include "server/lifecycle/health_reserve.h"

#include "absl/status/status.h"
#include "absl/strings/match.h"

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

CallReserve::Options ChecksOptions() {
  return {.max_calls = HealthReserve::kMaxHealthChecks,
          .max_calls_per_client = HealthReserve::kMaxHealthChecksPerClient,
          .bytes_per_call = HealthReserve::kHealthCallBytes,
          .calls = "health checks beyond --max-inflight-bytes",
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
          .advice = "end some of them, or ask with Check, which has places of its own"};
}

}  // namespace

HealthCall HealthCallOf(absl::string_view path) {
  for (const HealthPath& known : kHealthPaths) {
    if (path == known.path) return known.call;
  }
  return HealthCall::kNone;
}

HealthReserve::HealthReserve(ByteLedger* ledger, const Options& options)
    : ledger_(ledger), checks_(ChecksOptions()), watches_(WatchesOptions(options)) {}

RequestCharge HealthReserve::Charge(absl::string_view client, const RequestHead& head, int64_t bytes) {
  const HealthCall call = HealthCallOf(head.path);
  if (call == HealthCall::kWatch) return {watches_.Charge(client, bytes), Refusal::kHealthWatches};
  RequestCharge charge{ledger_->Charge(client, bytes)};
  // A probe over REST has no body, which could take long to come.
  const bool has_rest_body = head.has_body && absl::StartsWith(head.path, "/v2/");
  if (call == HealthCall::kNone || has_rest_body || !absl::IsResourceExhausted(charge.memory.status()))
    return charge;
  return {checks_.Charge(client, bytes), Refusal::kHealthChecks};
}

}  // namespace saccade::server
