#include "server/protocols/attest_tensors.h"

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "server/attestation/attester.h"
#include "server/attestation/tensors_text.h"
#include "server/core/retry_hint.h"
#include "server/core/sha256.h"
#include "server/core/shed_reason.h"

namespace saccade::server {
namespace {

// The pool needs less for most of its tasks.
constexpr absl::Duration kRetrySigning = absl::Milliseconds(100);

}  // namespace

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

void AttestOn(WorkPool* pool, const CallScope& scope, std::shared_ptr<const AskedTensors> asked,
              absl::StatusOr<TensorAnswer> answer, TensorDone then) {
  if (!answer.ok() || scope.attester() == nullptr) return std::move(then)(std::move(answer));
  struct Task {
    CallScope scope;
    std::shared_ptr<const AskedTensors> asked;
    TensorAnswer answer;
    TensorDone then;
  };
  const int64_t bytes = BytesOf(asked->inputs) + BytesOf(answer->outputs);
  // Shared, because a pool without room destroys its task.
  const auto task =
      std::make_shared<Task>(Task{scope, std::move(asked), *std::move(answer), std::move(then)});
  const auto run = [task] {
    absl::Status attested = Attest(task->scope, *task->asked, &task->answer);
    if (!attested.ok()) return std::move(task->then)(std::move(attested));
    std::move(task->then)(std::move(task->answer));
  };
  if (pool == nullptr || bytes <= kMaxDigestedHere) return run();
  if (pool->Submit(scope.client(), run)) return;
  absl::Status busy = absl::ResourceExhaustedError(
      "too many large answers wait to be signed, of all clients or of this one; try again later");
  SetShedReason(busy, ShedReason::kQueueFull);
  SetRetryAfter(busy, kRetrySigning);
  std::move(task->then)(std::move(busy));
}

}  // namespace saccade::server
