#include "server/engine/pass_copies.h"

#include <new>

#include "server/engine/shadow_sender.h"

namespace saccade::server {
namespace {

int64_t BytesOf(const ShareAnswer& answer) {
  return std::visit([](const auto& parts) { return server::BytesOf(parts); }, answer);
}

}  // namespace

std::unique_ptr<PassCopies> PassCopies::Choose(const Shares& shares,
                                               const std::vector<ShareAnswer>& answers) {
  const std::shared_ptr<const ReadyModel>& answering = shares.front()->call().model();
  const std::shared_ptr<Shadow> shadow = answering->shadow();
  if (shadow == nullptr || !shadow->copies_passes()) return nullptr;
  int64_t requests = 0;
  int64_t bytes = 0;
  for (size_t i = 0; i < shares.size(); ++i) {
    if (!shares[i]->is_whole_call()) continue;
    const PredictCall& call = shares[i]->call();
    ++requests;
    bytes += BytesOfCopy(call.request(), call.items(), *shadow) + BytesOf(answers[i]);
  }
  if (requests == 0 || !shadow->Wants(answering->has_waiting(), requests)) return nullptr;
  auto model = answering->FindShadow();
  if (!model.ok()) {
    shadow->Drop(ShadowLoss::kUnavailable, requests);
    return nullptr;
  }
  try {
    auto room = ShadowRoom::Enter(shadow, bytes, requests);
    if (room == nullptr) return nullptr;
    return std::unique_ptr<PassCopies>(
        new PassCopies(answering, *std::move(model), std::move(room), requests));
  } catch (const std::bad_alloc&) {
    shadow->Drop(ShadowLoss::kTooLarge, requests);
    return nullptr;
  }
}

PassTime PassCopies::Timed(PassTime pass) const {
  if (!copies_.calls.empty()) return {};
  pass.requests = requests_;
  return pass;
}

void PassCopies::Send() {
  room_.reset();
  if (!copies_.calls.empty()) answering_->shadow_sender()->Send(std::move(copies_));
}

}  // namespace saccade::server
