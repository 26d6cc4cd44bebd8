// The error that models/ throws when a model cannot be loaded.
#pragma once

#include <stdexcept>

namespace saccade::models {

// Bad weights, bad options, or an unknown architecture. The message says what was wrong, what was expected
// and, where there is a choice, which values are legal. It is meant for the owner of the model repository.
struct LoadError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The weights' tensors are not those of the network.
struct MisfitError : LoadError {
  using LoadError::LoadError;
};

}  // namespace saccade::models
