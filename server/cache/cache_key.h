// The cache key of a call: calls of one model version with equal keys get the same answer.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "server/core/tensor_call.h"

namespace saccade::server {

// A SHA-256, which is collision-resistant, so that no client can obtain another's answer
// (docs/decisions/0023-ensembles-and-cache.md).
using CacheKey = std::array<uint8_t, 32>;

struct CacheKeyHash {
  // Any 8 bytes of a SHA-256 are a good hash.
  size_t operator()(const CacheKey& key) const {
    size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof(hash));
    return hash;
  }
};

// Hashes the inputs in their order (name, type, shape and bytes, independent of how the bytes are split into
// pieces). Does not depend on the requested outputs, which are cut from the cached ones, nor on client,
// priority, deadline, model or version. Takes about 0.6 ms per megabyte. Thread-safe.
CacheKey CacheKeyOf(const TensorCall& call);

}  // namespace saccade::server
