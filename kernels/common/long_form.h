// The long form of tests, with SACCADE_LONG=1 (CONTRIBUTING.md).
#pragma once

#include <cstdlib>

namespace saccade::kernels {

// True if tests shall run all that they have, false if they shall be quick. Not thread-safe beside setenv().
inline bool IsLongForm() { return std::getenv("SACCADE_LONG") != nullptr; }

}  // namespace saccade::kernels
