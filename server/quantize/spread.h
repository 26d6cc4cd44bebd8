// Chooses some of many, evenly spread.
#pragma once

#include <cstddef>
#include <vector>

namespace saccade::server {

// Removes up to `count` of `positions`, evenly spread over them, and returns them. Both stay in order.
// REQUIRES: `positions` are ascending.
std::vector<size_t> TakeSpread(std::vector<size_t>& positions, size_t count);

}  // namespace saccade::server
