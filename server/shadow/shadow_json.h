// The comparison with a shadow version, and its promotion, as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "server/core/promotion.h"
#include "server/shadow/shadow.h"

namespace saccade::server {

std::string ToJson(const ShadowReport& report, const std::string& model, int64_t version);
// For a promotion that was decided earlier, while no comparison is running.
std::string ToJson(const Promotion& promotion, const std::string& model);

}  // namespace saccade::server
