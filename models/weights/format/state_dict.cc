#include "models/weights/format/state_dict.h"

#include <map>
#include <set>
#include <string>

#include "models/api/error.h"
#include "models/api/text.h"
#include "models/weights/format/pickle.h"
#include "models/weights/format/zip_reader.h"

namespace saccade::models {
namespace {

using Kind = PickleValue::Kind;
using Archive = std::map<std::string, Bytes>;

[[noreturn]] void Fail(const std::string& message) { throw LoadError("state_dict: " + message); }

// Returns the folder of the archive's records, which is named after the file they were first saved to.
std::string Folder(const Archive& archive) {
  constexpr std::string_view kPickle = "/data.pkl";
  std::string folder;
  for (const auto& [name, contents] : archive) {
    if (!name.ends_with(kPickle)) continue;
    if (!folder.empty()) Fail("the archive has two data.pkl");
    folder = name.substr(0, name.size() - kPickle.size()) + "/";
  }
  if (folder.empty()) Fail("the archive has no data.pkl; expected a file written by torch.save");
  return folder;
}

void RequireLittleEndian(const Archive& archive, const std::string& folder) {
  const auto found = archive.find(folder + "byteorder");
  if (found == archive.end()) return;  // written before this record existed, hence little-endian
  const std::string_view order(reinterpret_cast<const char*>(found->second.data()), found->second.size());
  if (order != "little") Fail("its byte order is " + Quote(order) + "; only 'little' is supported");
}

// Returns the dict that maps names to tensors.
const PickleValue& FindTensors(const Pickle& pickle) {
  const PickleValue& root = pickle.at(pickle.root);
  if (root.kind != Kind::kDict) Fail("the file does not contain a dict of tensors; save model.state_dict()");
  for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const PickleValue& key = pickle.at(root.items[i]);
    const PickleValue& value = pickle.at(root.items[i + 1]);
    const bool nested = key.kind == Kind::kString && (key.text == "state_dict" || key.text == "model");
    if (nested && value.kind == Kind::kDict) return value;
  }
  return root;
}

// Returns whether all elements that shape and strides reach, from the tensor's offset, lie within `elements`.
bool Fits(const PickleValue& tensor, int64_t elements) {
  int64_t last = tensor.extent;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    if (tensor.shape[i] == 0) return tensor.extent <= elements;
  }
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    int64_t reach = 0;
    if (__builtin_mul_overflow(tensor.shape[i] - 1, tensor.strides[i], &reach)) return false;
    if (__builtin_add_overflow(last, reach, &last)) return false;
  }
  return last < elements;
}

TensorEntry MakeEntry(const std::string& name, const Pickle& pickle, const PickleValue& tensor,
                      const Archive& archive, const std::string& folder) {
  const std::string where = "tensor " + Quote(name) + ": ";
  const PickleValue& storage = pickle.at(tensor.storage);
  const auto found = archive.find(folder + "data/" + std::string(storage.text));
  if (found == archive.end()) Fail(where + "the archive lacks its storage " + Quote(storage.text));
  const int64_t size = Info(storage.type).size;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(storage.extent, size, &bytes) ||
      bytes != static_cast<int64_t>(found->second.size())) {
    Fail(where + "its storage should hold " + std::to_string(storage.extent) + " elements of " +
         std::to_string(size) + " bytes, but has " + std::to_string(found->second.size()) + " bytes");
  }
  int64_t elements = 0;
  if (!Product(tensor.shape, elements)) Fail(where + "shape " + ShapeText(tensor.shape) + " is too large");
  if (!Fits(tensor, storage.extent)) {
    Fail(where + "shape " + ShapeText(tensor.shape) + " with strides " + ShapeText(tensor.strides) +
         " at offset " + std::to_string(tensor.extent) + " reaches beyond its storage of " +
         std::to_string(storage.extent) + " elements");
  }
  // With strides of zero a small storage could have a huge shape, which would be expensive to copy.
  if (elements > storage.extent)
    Fail(where + "shape " + ShapeText(tensor.shape) + " repeats its storage's elements");
  return {name, storage.type, tensor.shape, tensor.strides, found->second.data() + tensor.extent * size};
}

}  // namespace

std::vector<TensorEntry> ParseStateDict(Bytes file) {
  const Archive archive = ReadZip(file);
  const std::string folder = Folder(archive);
  RequireLittleEndian(archive, folder);
  const Pickle pickle = ReadPickle(archive.at(folder + "data.pkl"));
  const PickleValue& tensors = FindTensors(pickle);

  std::vector<TensorEntry> entries;
  std::set<std::string> names;
  for (size_t i = 0; i + 1 < tensors.items.size(); i += 2) {
    const PickleValue& key = pickle.at(tensors.items[i]);
    const PickleValue& value = pickle.at(tensors.items[i + 1]);
    if (key.kind != Kind::kString || !IsUtf8(key.text)) Fail("a tensor's name is not a UTF-8 string");
    const std::string name(key.text);
    if (value.kind != Kind::kTensor) Fail(Quote(name) + " is not a tensor; save model.state_dict() alone");
    if (!names.insert(name).second) Fail("tensor " + Quote(name) + " occurs twice");
    entries.push_back(MakeEntry(name, pickle, value, archive, folder));
  }
  return entries;
}

}  // namespace saccade::models
