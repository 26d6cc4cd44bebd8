// A pickle virtual machine that supports only what a state_dict needs. It calls and imports nothing. A byte
// of its input may make a value of 120 bytes, and a tensor takes some hundred more; it makes at most two
// million values, and allocates about a gigabyte at most.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/weights/format/tensor_entry.h"

namespace saccade::models {

// Values refer to each other by index in one table, so that hostile nesting or cycles are harmless.
struct PickleValue {
  enum class Kind {
    kNone,
    kBool,
    kInt,
    kFloat,
    kString,
    kTuple,
    kList,
    kDict,
    kGlobal,
    kStorage,
    kTensor,
    kMark
  };
  Kind kind = Kind::kNone;
  int64_t integer = 0;          // kBool, kInt
  std::string_view text;        // kString; kGlobal as "module\nname"; kStorage: its key in the archive
  std::vector<uint32_t> items;  // kTuple, kList; kDict as key, value, key, value...

  ElementType type = ElementType::kF32;  // kStorage
  uint32_t storage = 0;                  // kTensor: index of its storage
  // kStorage: number of elements. kTensor: offset in the storage.
  int64_t extent = 0;
  std::vector<int64_t> shape;  // kTensor
  std::vector<int64_t> strides;
};

struct Pickle {
  std::vector<PickleValue> values;
  uint32_t root = 0;

  const PickleValue& at(uint32_t index) const { return values[index]; }
};

// Reads protocol 2, torch.save's default, as Python 2 and 3 write it. Globals other than OrderedDict, torch's
// storage classes and the functions that rebuild a tensor are rejected by name. The result's text points into
// `pickle`. Throws LoadError.
Pickle ReadPickle(Bytes pickle);

// As ReadPickle(), but other bytes may follow the pickle. Removes the pickle's bytes from `stream`.
Pickle ReadFirstPickle(Bytes& stream);

}  // namespace saccade::models
