#include "models/weights/format/safetensors.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <set>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/weights/format/json_reader.h"

namespace saccade::models {
namespace {

constexpr size_t kLengthBytes = 8;

struct Placed {
  TensorEntry entry;
  int64_t begin = 0;
  int64_t end = 0;
};

[[noreturn]] void Fail(const std::string& name, const std::string& message) {
  throw LoadError("safetensors: tensor " + Quote(name) + ": " + message);
}

std::string_view Header(Bytes file) {
  if (file.size() < kLengthBytes) {
    throw LoadError(
        "safetensors: the file has " + std::to_string(file.size()) +
        " bytes, expected at least 8 for the header's length. It was cut short, or is not safetensors");
  }
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= std::to_integer<uint64_t>(file[i]) << (8 * i);
  if (length > static_cast<uint64_t>(kMaxHeaderBytes)) {
    throw LoadError("safetensors: the header claims " + std::to_string(length) + " bytes; at most " +
                    std::to_string(kMaxHeaderBytes) + " are allowed");
  }
  if (length > file.size() - kLengthBytes) {
    throw LoadError("safetensors: the header claims " + std::to_string(length) + " bytes, but the file has " +
                    std::to_string(file.size() - kLengthBytes) + " after the length. It was cut short");
  }
  const std::string_view header(reinterpret_cast<const char*>(file.data() + kLengthBytes), length);
  if (!header.starts_with('{')) throw LoadError("safetensors: the header does not begin with '{'");
  return header;
}

std::map<std::string, std::string> ReadMetadata(JsonReader& json) {
  std::map<std::string, std::string> metadata;
  json.Expect('{');
  if (json.Accept('}')) return metadata;
  do {
    const std::string key = json.ReadString();
    if (metadata.contains(key)) json.Fail("__metadata__ has the key " + Quote(key) + " twice");
    json.Expect(':');
    metadata[key] = json.ReadString();
  } while (json.Accept(','));
  json.Expect('}');
  return metadata;
}

std::vector<int64_t> ReadNumbers(JsonReader& json, const std::string& name, const char* what, size_t max) {
  std::vector<int64_t> numbers;
  json.Expect('[');
  if (json.Accept(']')) return numbers;
  do {
    if (numbers.size() == max)
      Fail(name, std::string(what) + " has more than " + std::to_string(max) + " numbers");
    numbers.push_back(json.ReadUnsigned());
  } while (json.Accept(','));
  json.Expect(']');
  return numbers;
}

ElementType TypeNamed(const std::string& tensor, const std::string& type) {
  std::string known;
  for (const ElementTypeInfo& info : ElementTypes()) {
    if (type == info.safetensors_name) return info.type;
    known += (known.empty() ? "" : ", ") + std::string(info.safetensors_name);
  }
  Fail(tensor, "dtype " + Quote(type) + " is not known; expected one of " + known);
}

Placed ReadTensor(JsonReader& json, const std::string& name) {
  std::optional<ElementType> type;
  std::optional<std::vector<int64_t>> shape;
  std::optional<std::vector<int64_t>> offsets;
  json.Expect('{');
  do {
    const std::string key = json.ReadString();
    json.Expect(':');
    if (key == "dtype" && !type) {
      type = TypeNamed(name, json.ReadString());
    } else if (key == "shape" && !shape) {
      shape = ReadNumbers(json, name, "shape", kMaxDimensions);
    } else if (key == "data_offsets" && !offsets) {
      offsets = ReadNumbers(json, name, "data_offsets", 2);
    } else {
      Fail(name,
           "the field " + Quote(key) + " is unknown or a duplicate; expected dtype, shape, data_offsets");
    }
  } while (json.Accept(','));
  json.Expect('}');
  if (!type || !shape || !offsets) Fail(name, "dtype, shape or data_offsets is missing");
  if (offsets->size() != 2) Fail(name, "data_offsets must be [begin, end]");
  return {{name, *type, *shape, {}, nullptr}, offsets->front(), offsets->back()};
}

std::vector<int64_t> ContiguousStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (size_t i = shape.size(); i > 1; --i)
    strides[i - 2] = strides[i - 1] * std::max<int64_t>(shape[i - 1], 1);
  return strides;
}

// Sets the entry's data if its offsets lie within the file's data and match its shape.
void PlacementOf(Placed& tensor, Bytes data) {
  const std::string& name = tensor.entry.name;
  const std::string offsets = ShapeText(std::array{tensor.begin, tensor.end});
  if (tensor.begin > tensor.end) Fail(name, "data_offsets " + offsets + " end before they begin");
  if (tensor.end > static_cast<int64_t>(data.size())) {
    Fail(name, "data_offsets " + offsets + " reach beyond the " + std::to_string(data.size()) +
                   " bytes of data in the file. It was cut short");
  }
  int64_t elements = 0;
  int64_t bytes = 0;
  if (!Product(tensor.entry.shape, elements) ||
      __builtin_mul_overflow(elements, Info(tensor.entry.type).size, &bytes)) {
    Fail(name, "shape " + ShapeText(tensor.entry.shape) + " is too large");
  }
  if (tensor.end - tensor.begin != bytes) {
    Fail(name, "shape " + ShapeText(tensor.entry.shape) + " of " + Info(tensor.entry.type).safetensors_name +
                   " takes " + std::to_string(bytes) + " bytes, but data_offsets " + offsets + " hold " +
                   std::to_string(tensor.end - tensor.begin));
  }
  tensor.entry.strides = ContiguousStrides(tensor.entry.shape);
  tensor.entry.data = data.data() + tensor.begin;
}

// The format allows neither overlaps nor gaps: in order of their offsets, the tensors cover the data exactly.
void CheckLayout(const std::vector<Placed>& tensors, int64_t data_bytes) {
  std::vector<const Placed*> order;
  for (const Placed& tensor : tensors) order.push_back(&tensor);
  std::sort(order.begin(), order.end(), [](const Placed* a, const Placed* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  int64_t expected = 0;
  for (const Placed* tensor : order) {
    if (tensor->begin != expected) {
      Fail(tensor->entry.name, "its data begins at " + std::to_string(tensor->begin) +
                                   ", but the tensor before it ends at " + std::to_string(expected) +
                                   (tensor->begin < expected ? ": they overlap" : ": there is a gap"));
    }
    expected = tensor->end;
  }
  if (expected != data_bytes) {
    throw LoadError("safetensors: the tensors take " + std::to_string(expected) +
                    " bytes, but the file has " + std::to_string(data_bytes) + " after the header");
  }
}

struct HeaderContents {
  std::vector<Placed> tensors;
  std::map<std::string, std::string> metadata;
};

HeaderContents ReadHeader(Bytes file) {
  const std::string_view header = Header(file);
  const Bytes data = file.subspan(kLengthBytes + header.size());
  HeaderContents contents;
  JsonReader json(header);
  std::set<std::string> names;
  json.Expect('{');
  if (!json.Accept('}')) {
    do {
      const std::string name = json.ReadString();
      if (!names.insert(name).second) Fail(name, "it is in the header twice");
      json.Expect(':');
      if (name == "__metadata__") {
        contents.metadata = ReadMetadata(json);
      } else {
        contents.tensors.push_back(ReadTensor(json, name));
        PlacementOf(contents.tensors.back(), data);
      }
    } while (json.Accept(','));
    json.Expect('}');
  }
  json.ExpectEnd();
  CheckLayout(contents.tensors, static_cast<int64_t>(data.size()));
  return contents;
}

}  // namespace

std::vector<TensorEntry> ParseSafetensors(Bytes file) {
  std::vector<Placed> tensors = ReadHeader(file).tensors;
  std::vector<TensorEntry> entries;
  entries.reserve(tensors.size());
  for (Placed& tensor : tensors) entries.push_back(std::move(tensor.entry));
  return entries;
}

std::map<std::string, std::string> SafetensorsMetadata(Bytes file) { return ReadHeader(file).metadata; }

}  // namespace saccade::models
