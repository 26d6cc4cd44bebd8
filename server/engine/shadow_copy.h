// Copies of answered requests, for the shadow version of their model.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "server/core/clock.h"
#include "server/core/request.h"
#include "server/engine/item.h"
#include "server/engine/predict_call.h"
#include "server/engine/ready_model.h"

namespace saccade::server {

// A call that a shadow version is to compute. Its answer goes to nobody: it is compared.
struct ShadowCopy {
  std::shared_ptr<ReadyModel> model;
  std::shared_ptr<PredictCall> call;
};

// Copies the request, if it is chosen and there is room, with what is to be compared of `response`. Takes the
// pixels that the server has prepared out of `items`, and copies those that belong to the client. `bucket` is
// that of a request with named tensors. The call of the copy is null if there is none.
ShadowCopy CopyForShadow(const PredictCall::Deps& deps, const Request& request, const Response& response,
                         std::vector<Item>& items, int64_t bucket);

}  // namespace saccade::server
