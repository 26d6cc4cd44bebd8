#include "server/attestation/attester.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "server/core/sha256.h"

namespace saccade::server {
namespace {

constexpr int kFormat = 1;

class Writer {
 public:
  void Add(absl::string_view name, absl::string_view json) {
    text_ += text_.empty() ? "{\"" : ",\"";
    text_.append(name.data(), name.size());
    text_ += "\":";
    text_.append(json.data(), json.size());
  }
  void AddText(absl::string_view name, absl::string_view text) { Add(name, JsonText(text)); }
  std::string End() { return std::move(text_) + "}"; }

 private:
  std::string text_;
};

std::string ListOf(const std::vector<std::string>& sums) {
  std::string list = "[";
  for (const std::string& sum : sums) list += (list.size() > 1 ? ",\"" : "\"") + sum + "\"";
  return list + "]";
}

}  // namespace

std::string JsonText(absl::string_view text) {
  return nlohmann::json(std::string(text)).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
}

absl::StatusOr<Attestation> Attester::Attest(const AttestedCall& call, const ServedBy& served) const {
  const ModelIdentity& identity = *served.identity;
  const auto missing = [](const std::string& sum) { return sum.empty(); };
  const std::string inputs = ListOf(call.inputs_sha256);
  if (call.answer_sha256.empty() ||
      std::any_of(call.inputs_sha256.begin(), call.inputs_sha256.end(), missing))
    return absl::InternalError("the answer could not be attested, because memory is short; try again");
  Writer writer;
  writer.Add("saccade_attestation", std::to_string(kFormat));
  writer.AddText("key_sha256", key_->fingerprint());
  writer.AddText("time", absl::FormatTime("%Y-%m-%d%ET%H:%M:%E6SZ", clock_->Now(), absl::UTCTimeZone()));
  writer.AddText("model", call.model);
  writer.Add("version", std::to_string(served.version));
  writer.AddText("weights_sha256", identity.weights_sha256);
  writer.AddText("configuration_sha256", identity.configuration_sha256);
  writer.AddText("build", build_);
  writer.AddText("instruction_set", identity.instruction_set);
  writer.AddText("precision", identity.precision);
  writer.AddText("protocol", call.protocol);
  if (call.request.size() <= kMaxRequestText) {
    writer.Add("request", call.request);
  } else {
    writer.AddText("request_sha256", Sha256Hex(call.request));
  }
  if (call.inputs_sha256.size() <= kMaxInputDigests) {
    writer.Add("inputs_sha256", inputs);
  } else {
    writer.AddText("all_inputs_sha256", Sha256Hex(inputs));
  }
  writer.AddText("answer_sha256", call.answer_sha256);
  Attestation attestation;
  attestation.statement = writer.End();
  auto signature = key_->Sign(attestation.statement);
  if (!signature.ok()) return signature.status();
  attestation.signature = *std::move(signature);
  attestation.public_key = key_->public_bytes();
  return attestation;
}

}  // namespace saccade::server
