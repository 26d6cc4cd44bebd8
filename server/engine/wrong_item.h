// The error for an item that a model has no result for because of the item's own values.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "models/tasks/result.h"
#include "server/core/request.h"
#include "server/engine/item.h"

namespace saccade::server {

// INVALID_ARGUMENT, which HasWrongValues(): names the input and, of tensors and volumes, the first value that
// is not finite and its place: of a tensor as it was sent, of a volume [plane, row, column]. `number` is the
// item's among those of the request. Reads the item's values once. REQUIRES: `failure.of_input`.
absl::Status WrongItem(const Request& request, const models::ImageInput& input, const Item& item,
                       int64_t number, const models::Failure& failure);

}  // namespace saccade::server
