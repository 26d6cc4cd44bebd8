#include "server/engine/call_share.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <iterator>
#include <utility>

#include "server/core/inline_passes.h"
#include "server/logging/log.h"

namespace saccade::server {
namespace {

struct Group {
  int64_t bucket = 0;
  std::vector<size_t> items;
};

BatchTask::Traits TraitsOf(const PredictCall& call, const std::vector<size_t>& items) {
  BatchTask::Traits traits = call.traits();
  traits.size = static_cast<int64_t>(items.size());
  traits.bucket = BucketId(call.items()[items[0]].placement);
  return traits;
}

BatchTask::Traits TraitsOfTensors(const PredictCall& call) {
  BatchTask::Traits traits = call.traits();
  traits.bucket = call.bucket();
  return traits;
}

BatchTask::Traits TraitsOfParts(const Shares& parts) {
  BatchTask::Traits traits = parts.front()->traits();
  traits.size = 0;
  for (const auto& part : parts) traits.size += part->size();
  return traits;
}

}  // namespace

CallShare::CallShare(std::shared_ptr<PredictCall> call, std::vector<size_t> items)
    : BatchTask(TraitsOf(*call, items)), call_(std::move(call)), items_(std::move(items)) {}

CallShare::CallShare(std::shared_ptr<PredictCall> call)
    : BatchTask(TraitsOfTensors(*call)), call_(std::move(call)) {}

CallShare::CallShare(Shares parts) : BatchTask(TraitsOfParts(parts)), parts_(std::move(parts)) {}

CallShare::~CallShare() {
  if (call_ == nullptr) return;
  try {
    Reject(absl::InternalError(
        "a part of the request was dropped without an answer; this is a bug in saccaded"));
  } catch (const std::exception& error) {
    // The call is answered when its last share is gone.
    Log(LogLevel::kError, "a part of a request was dropped", {{"what", error.what()}});
  }
}

void CallShare::BeginWait(std::atomic<int64_t>* requests) {
  for (const auto& part : parts_) part->BeginWait(requests);
  if (call_ == nullptr) return;
  waiting_in_ = requests;
  call_->ShareWaits(requests);
}

void CallShare::EndWait() {
  for (const auto& part : parts_) part->EndWait();
  if (auto* const requests = std::exchange(waiting_in_, nullptr); requests != nullptr)
    call_->ShareWaitsNoLonger(requests);
}

std::shared_ptr<PredictCall> CallShare::TakeCall() {
  EndWait();
  return std::exchange(call_, nullptr);
}

void CallShare::Answer(ShareAnswer answer, const ForwardPass& pass) {
  TakeCall()->EndShare(items_, std::move(answer), pass);
}

void CallShare::FailComputed(absl::Status why) { TakeCall()->FailShare(std::move(why), /*computed=*/true); }

void CallShare::Reject(absl::Status why) {
  for (const auto& part : parts_) part->Reject(why);
  if (call_ == nullptr) return;
  if (!failure_.ok() && !absl::IsCancelled(why)) return FailComputed(failure_);
  TakeCall()->FailShare(std::move(why), /*computed=*/false);
}

Shares ShareOut(std::shared_ptr<PredictCall> call, int64_t max_items) {
  Shares shares;
  if (std::holds_alternative<NamedTensors>(call->request().input)) {
    call->ExpectShares(1);
    shares.push_back(std::make_unique<CallShare>(std::move(call)));
    return shares;
  }
  std::vector<Group> groups;
  for (size_t i = 0; i < call->items().size(); ++i) {
    const int64_t bucket = BucketId(call->items()[i].placement);
    // A bucket has more than max_items items only for tiles: other requests have at most max_batch_size
    // items.
    const auto same = [&](const Group& group) {
      return group.bucket == bucket && static_cast<int64_t>(group.items.size()) < max_items;
    };
    auto found = std::find_if(groups.begin(), groups.end(), same);
    if (found == groups.end()) found = groups.insert(groups.end(), Group{bucket, {}});
    found->items.push_back(i);
  }
  call->ExpectShares(static_cast<int>(groups.size()));
  for (Group& group : groups) shares.push_back(std::make_unique<CallShare>(call, std::move(group.items)));
  return shares;
}

Shares Joined(Shares shares) {
  auto joined = std::make_unique<CallShare>(std::move(shares));
  Shares one;
  one.push_back(std::move(joined));
  return one;
}

Shares Apart(Shares shares) {
  // Called for every pass, and joined shares are rare: without them, nothing is allocated.
  for (size_t i = 0; i < shares.size(); ++i) {
    Shares parts = shares[i]->TakeParts();
    if (parts.empty()) continue;
    shares[i] = std::move(parts.front());
    shares.insert(shares.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                  std::make_move_iterator(parts.begin() + 1), std::make_move_iterator(parts.end()));
    i += parts.size() - 1;
  }
  return shares;
}

void SubmitShares(ReadyModel& model, Shares shares) {
  for (std::unique_ptr<CallShare>& share : shares) {
    const LimitInlinePasses limit(&share == &shares.back() ? InlinePasses::kAny : InlinePasses::kNone);
    if (absl::Status submitted = model.Submit(share); !submitted.ok()) share->Reject(submitted);
  }
}

}  // namespace saccade::server
