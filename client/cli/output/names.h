// Names of enumerators and shapes, as the commands print them.
#pragma once

#include <string>

#include "client/cpp/types.h"

namespace saccade::client {

std::string StateName(ModelState state);
std::string HealthName(Health health);

// Returns "measuring", "promoted" or "refused".
std::string StateName(Promotion::State state);

// Returns for example "shadow version 4 measuring: compared 120 of 1000".
std::string TextOf(const Promotion& promotion);

// Returns "uint8", "uint16" or "float32".
std::string NameOf(VoxelType type);

// Returns for example "24x512x512 uint16".
std::string NameOf(const VolumeShape& shape);

}  // namespace saccade::client
