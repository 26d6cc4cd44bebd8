// The supported parameters of requests and of their tensors.
#pragma once

#include <cstddef>
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

// Applies a request's parameter: priority or timeout. INVALID_ARGUMENT for a value of another type;
// UNIMPLEMENTED for sequences, which would change the answer. Other parameters are ignored.
absl::Status ApplyParameter(std::string_view name, const Parameter& value, TensorCall& call);

// Applies an output's parameter: classification, or its place in shared memory. Errors as above.
absl::Status ApplyParameter(std::string_view name, const Parameter& value, WantedOutput& output);

// Applies an input's parameter: shared_memory_region, _offset or _byte_size, which locate its bytes.
absl::Status ApplyParameter(std::string_view name, const Parameter& value, std::optional<SharedRange>& range);

// Maximum length of a request's id. It comes back with the answer and with every error.
inline constexpr size_t kMaxInferId = 1024;
// INVALID_ARGUMENT for a longer one.
absl::Status CheckInferId(std::string_view id);

// Called after all parameters of an input or output were applied. INVALID_ARGUMENT if a part of the range is
// missing, or if an output is both classified and shared.
absl::Status CheckParameters(const std::optional<SharedRange>& range);
absl::Status CheckParameters(const WantedOutput& output);
// Called for all outputs of a request. INVALID_ARGUMENT if one is named twice: it has one place and one form.
absl::Status CheckNamedOnce(const std::vector<WantedOutput>& outputs);

}  // namespace saccade::server
