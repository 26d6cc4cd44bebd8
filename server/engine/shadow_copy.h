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

// Calls that a shadow version is to compute, in one pass if there are several. Their answers go to nobody:
// they are compared.
struct ShadowCopies {
  std::shared_ptr<ReadyModel> model = nullptr;
  std::vector<std::shared_ptr<PredictCall>> calls = {};
};

// The room of copies, from Shadow::Enter() to the end of the last one's call.
class ShadowRoom {
 public:
  ShadowRoom(std::shared_ptr<Shadow> shadow, int64_t bytes, int64_t requests)
      : shadow_(std::move(shadow)), bytes_(bytes), requests_(requests) {}
  ~ShadowRoom() { shadow_->Leave(bytes_, requests_); }
  ShadowRoom(const ShadowRoom&) = delete;
  ShadowRoom& operator=(const ShadowRoom&) = delete;

 private:
  const std::shared_ptr<Shadow> shadow_;
  const int64_t bytes_;
  const int64_t requests_;
};

// A request that was just answered: what its copy is made of.
struct AnsweredRequest {
  const PredictCall::Deps& deps;
  const Request& request;
  const Response& response;
  std::vector<Item>& items;
  // Of a request with named tensors.
  int64_t bucket = 0;
};

// The memory that a copy of the request takes, without that of its answer.
int64_t BytesOfCopy(const Request& request, absl::Span<const Item> items, const Shadow& shadow);

// Copies the request, if it is chosen and there is room, with what is to be compared of the response. Takes
// the pixels that the server has prepared out of `items`, and copies those that belong to the client. `pass`
// is ForwardPass::copies: if the shadow version computes whole passes, the copy is added to it. Without calls
// if there is no copy, or if it was added.
ShadowCopies CopyForShadow(const AnsweredRequest& answered, PassCopies* pass);

}  // namespace saccade::server
