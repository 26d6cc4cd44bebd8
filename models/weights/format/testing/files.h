// Weights files made by hand, right or wrong, for the tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models::testing {

Bytes AsBytes(const std::string& text);

// The low `size` bytes of `value`, little-endian.
std::string Little(uint64_t value, int size);

// A safetensors file of that header and data.
std::string Safetensors(const std::string& header, const std::string& data);

struct ZipEntry {
  std::string name;
  std::string contents;
};

// A zip archive of stored entries, as torch.save lays them out but for the padding.
std::string Zip(const std::vector<ZipEntry>& entries);

// Pieces of protocol 2 as torch.save writes them.
std::string PickledText(const std::string& text);
std::string PickledInt(int32_t value);
std::string PickledTuple(const std::vector<int32_t>& numbers);
// One tensor of a storage class ("FloatStorage") that holds `elements`.
std::string PickledTensor(const std::string& storage_class, const std::string& key, int32_t elements,
                          int32_t offset, const std::vector<int32_t>& shape,
                          const std::vector<int32_t>& strides);
// {name: value...}, from PROTO to STOP.
std::string PickledDict(const std::vector<std::pair<std::string, std::string>>& items);

// {"a": float32 [2, 3], "b": int64 []} in both formats.
std::string SmallSafetensors();
std::string SmallStateDict();

}  // namespace saccade::models::testing
