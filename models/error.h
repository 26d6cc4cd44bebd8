// What models/ throws when a model cannot be made.
#pragma once

#include <stdexcept>

namespace saccade::models {

// Bad weights, bad options, or an unknown architecture. The message says what was wrong, what was expected
// and, where there is a choice, what is legal; it is fit to be shown to whoever owns the model repository.
struct LoadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace saccade::models
