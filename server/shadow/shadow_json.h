// What was found of a shadow version, as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "server/core/promotion.h"
#include "server/shadow/shadow.h"

namespace saccade::server {

std::string ToJson(const ShadowReport& report, const std::string& model, int64_t version);
// Of a promotion before this start, whose trial is over.
std::string ToJson(const Promotion& promotion, const std::string& model);

}  // namespace saccade::server
