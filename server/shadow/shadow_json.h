// What was found of a shadow version, as JSON.
#pragma once

#include <cstdint>
#include <string>

#include "server/shadow/shadow.h"

namespace saccade::server {

std::string ToJson(const ShadowReport& report, const std::string& model, int64_t version);

}  // namespace saccade::server
