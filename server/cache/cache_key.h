// What two calls of one model have in common that get the same answer.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "server/core/tensor_call.h"

namespace saccade::server {

// A SHA-256: nobody can make two requests of one key, so that one client never gets another's answer
// (docs/decisions/0023-ensembles-and-cache.md).
using CacheKey = std::array<uint8_t, 32>;

struct CacheKeyHash {
  // Any part of it is as good as all.
  size_t operator()(const CacheKey& key) const {
    size_t hash = 0;
    std::memcpy(&hash, key.data(), sizeof(hash));
    return hash;
  }
};

// Of the inputs, in their order, with name, type, shape and bytes, wherever these lie, and of the wanted
// outputs. Who asks, how urgently and until when is not in it; nor are model and version. Takes about 0.6 ms
// a megabyte. Thread-safe.
CacheKey CacheKeyOf(const TensorCall& call);

}  // namespace saccade::server
