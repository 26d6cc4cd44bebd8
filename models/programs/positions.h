// Maps the configuration's tensor names to a program's arguments or results.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/programs/signature.h"

namespace saccade::models {

// Returns the position of each tensor: by the program's own names, if all names are among `known`; else by
// the number after two underscores (INPUT__0), if all names have one; else by the order of the configuration.
// Throws a LoadError, which begins with `what` ("input" or "output"), if two tensors have the same position,
// or a position is not below `count`.
std::vector<size_t> PositionsOf(const std::vector<TensorSignature>& tensors,
                                const std::vector<std::string>& known, size_t count, const char* what);

}  // namespace saccade::models
