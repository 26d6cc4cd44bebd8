// Which of a program's arguments or results each name of the configuration stands for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/programs/signature.h"

namespace saccade::models {

// By what the program itself calls them, if all names are among `known`; else by the number behind two
// underscores (INPUT__0), if all have one; else in the configuration's order. Throws LoadError, which begins
// with `what` ("input" or "output"), if two stand for the same, or a position is not below `count`.
std::vector<size_t> PositionsOf(const std::vector<TensorSignature>& tensors,
                                const std::vector<std::string>& known, size_t count, const char* what);

}  // namespace saccade::models
