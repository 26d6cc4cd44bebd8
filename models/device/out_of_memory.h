// Recognises exceptions that say that memory was insufficient.
#pragma once

#include <exception>

namespace saccade::models {

// Whether the host's or a GPU's memory was insufficient, as LibTorch, CUDA and its libraries report it.
bool IsOutOfMemory(const std::exception& error);

}  // namespace saccade::models
