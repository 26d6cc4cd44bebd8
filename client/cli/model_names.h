// Names of a model's state and health.
#pragma once

#include <string>

#include "client/types.h"

namespace saccade::client {

std::string StateName(ModelState state);
std::string HealthName(Health health);

}  // namespace saccade::client
