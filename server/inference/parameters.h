// The parameters of requests and their tensors that mean something to us.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "server/core/tensor_call.h"

namespace saccade::server {

using Parameter = std::variant<bool, int64_t, uint64_t, double, std::string_view>;
// By name.
using NamedParameters = std::vector<std::pair<std::string_view, Parameter>>;

// A request's: priority and timeout. INVALID_ARGUMENT for a value of another type; UNIMPLEMENTED for what
// would change the answer and is not served: sequences. Every other one is its client's own business.
absl::Status ApplyParameter(std::string_view name, const Parameter& value, TensorCall& call);

// A wanted output's: classification, and where it goes in shared memory. Errors as above.
absl::Status ApplyParameter(std::string_view name, const Parameter& value, WantedOutput& output);

// An input's: shared_memory_region, _offset and _byte_size, which say where its bytes lie.
absl::Status ApplyParameter(std::string_view name, const Parameter& value, std::optional<SharedRange>& range);

// To be called when all parameters of an input or output were applied. INVALID_ARGUMENT if a part of the
// range is missing, or for an output that cannot be both classified and shared.
absl::Status CheckParameters(const std::optional<SharedRange>& range);
absl::Status CheckParameters(const WantedOutput& output);

}  // namespace saccade::server
