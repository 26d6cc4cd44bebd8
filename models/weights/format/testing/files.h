// Makes valid and invalid weights files, for tests.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models::testing {

Bytes AsBytes(const std::string& text);

// Returns the low `size` bytes of `value`, little-endian.
std::string Little(uint64_t value, int size);

// Returns a safetensors file with this header and data.
std::string Safetensors(const std::string& header, const std::string& data);

struct ZipEntry {
  std::string name;
  std::string contents;
};

// Returns a zip archive of stored entries, in torch.save's layout but without padding.
std::string Zip(const std::vector<ZipEntry>& entries);

// Parts of a protocol 2 pickle, as torch.save writes them.
std::string PickledText(const std::string& text);
std::string PickledInt(int32_t value);
std::string PickledTuple(const std::vector<int32_t>& numbers);
// A tensor in a storage of class `storage_class` ("FloatStorage") with `elements` elements.
std::string PickledTensor(const std::string& storage_class, const std::string& key, int32_t elements,
                          int32_t offset, const std::vector<int32_t>& shape,
                          const std::vector<int32_t>& strides);
// The stream that torch.save wrote before PyTorch 1.6: `pickle`, the keys of its storages, and for each its
// number of elements and their bytes.
struct StreamStorage {
  std::string key;
  uint64_t elements = 0;
  std::string bytes;
};
std::string SavedStream(const std::string& pickle, const std::vector<StreamStorage>& storages);
// A whole pickle of {name: value...}, from PROTO to STOP.
std::string PickledDict(const std::vector<std::pair<std::string, std::string>>& items);

// Files with {"a": float32 [2, 3], "b": int64 []} in the three formats.
std::string SmallSafetensors();
std::string SmallStateDict();
std::string SmallSavedStream();

}  // namespace saccade::models::testing
