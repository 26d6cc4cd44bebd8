// Copies of answered requests, for the shadow version of their model.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/engine/item.h"
#include "server/engine/predict_call.h"
#include "server/engine/ready_model.h"

namespace saccade::server {

// Calls for a shadow version to compute, in one pass if there are several. Their answers are compared with
// the original ones and not sent to a client.
struct ShadowCopies {
  std::shared_ptr<ReadyModel> model = nullptr;
  std::vector<std::shared_ptr<PredictCall>> calls = {};
};

// The room that Shadow::Enter() reserved for copies, which share this object. The destructor gives it back.
class ShadowRoom {
 public:
  // Null if Enter() returns false. Throws std::bad_alloc, and nothing is reserved then.
  static std::shared_ptr<ShadowRoom> Enter(std::shared_ptr<Shadow> shadow, int64_t bytes, int64_t requests) {
    auto room = std::make_shared<ShadowRoom>(std::move(shadow), bytes, requests);
    room->entered_ = room->shadow_->Enter(bytes, requests);
    return room->entered_ ? std::move(room) : nullptr;
  }

  // Use Enter().
  ShadowRoom(std::shared_ptr<Shadow> shadow, int64_t bytes, int64_t requests)
      : shadow_(std::move(shadow)), bytes_(bytes), requests_(requests) {}
  ~ShadowRoom() {
    if (entered_) shadow_->Leave(bytes_, requests_);
  }
  ShadowRoom(const ShadowRoom&) = delete;
  ShadowRoom& operator=(const ShadowRoom&) = delete;

 private:
  const std::shared_ptr<Shadow> shadow_;
  const int64_t bytes_;
  const int64_t requests_;
  bool entered_ = false;
};

// A request that was just answered, from which a copy is made.
struct AnsweredRequest {
  const PredictCall::Deps& deps;
  const Request& request;
  const Response& response;
  std::vector<Item>& items;
  // The bucket of a request with named tensors; unused for other requests, whose items have their buckets.
  int64_t bucket = 0;
};

// The memory that a copy of the request takes, without that of its answer.
int64_t BytesOfCopy(const Request& request, absl::Span<const Item> items, const Shadow& shadow);

// Copies the request, and the part of the response that is compared, if the request is chosen and there is
// room. Moves pixels that the server owns out of `items`, and copies those that belong to the client. `pass`
// is ForwardPass::copies: if passes are copied whole, the copy is added to it. The result has no calls if
// there is no copy, or if it was added to `pass`.
ShadowCopies CopyForShadow(const AnsweredRequest& answered, PassCopies* pass);

}  // namespace saccade::server
