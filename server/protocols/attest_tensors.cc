#include "server/protocols/attest_tensors.h"

#include <algorithm>
#include <utility>

#include "server/attestation/attester.h"
#include "server/attestation/tensors_text.h"
#include "server/core/sha256.h"

namespace saccade::server {

AskedTensors AskedOf(const CallScope& scope, const TensorCall& call) {
  if (!scope.may_attest()) return {};
  return {.inputs = call.inputs, .outputs = call.outputs};
}

absl::Status Attest(const CallScope& scope, const AskedTensors& asked, TensorAnswer* answer) {
  const Attester* const attester = scope.attester();
  const bool is_shared = std::any_of(answer->outputs.begin(), answer->outputs.end(),
                                     [](const Tensor& output) { return output.shared.has_value(); });
  if (attester == nullptr || is_shared) return absl::OkStatus();
  AttestedCall call{
      .protocol = "inference", .model = answer->model, .request = RequestText(asked.inputs, asked.outputs)};
  for (const Tensor& input : asked.inputs) call.inputs_sha256.push_back(Sha256Hex(input.data));
  const std::string text = AnswerText(answer->outputs);
  if (!text.empty()) call.answer_sha256 = Sha256Hex(text);
  auto attested = attester->Attest(call, scope.served());
  if (!attested.ok()) return attested.status();
  answer->attestation = *std::move(attested);
  return absl::OkStatus();
}

}  // namespace saccade::server
