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

// What torch.save wrote: the pickle, and the elements of its storages by key.
struct Saved {
  Pickle pickle;
  std::map<std::string, Bytes, std::less<>> storages;
};

[[noreturn]] void Fail(const std::string& message) { throw LoadError("state_dict: " + message); }

// A program is an archive too, of code that this reader does not execute. Its compressed entries would
// otherwise be the error.
void RefusePrograms(Bytes file) {
  for (const std::string& name : ZipNames(file)) {
    if (name.ends_with("/constants.pkl")) {
      throw LoadError(
          "this is a TorchScript program, not a state_dict: name it model.pt and set backend: \"pytorch\" in "
          "config.pbtxt, or save model.state_dict()");
    }
    if (name.ends_with("/archive_format")) {
      throw LoadError(
          "this is a program that torch.export saved, not a state_dict: compile it with "
          "torch._inductor.aoti_compile_and_package, name the package model.pt2 and set backend: \"pytorch\" "
          "in config.pbtxt, or save model.state_dict()");
    }
  }
}

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

TensorEntry MakeEntry(const std::string& name, const Saved& saved, const PickleValue& tensor) {
  const std::string where = "tensor " + Quote(name) + ": ";
  const PickleValue& storage = saved.pickle.at(tensor.storage);
  const auto found = saved.storages.find(storage.text);
  if (found == saved.storages.end()) Fail(where + "the file lacks its storage " + Quote(storage.text));
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

Saved ReadArchive(Bytes file) {
  RefusePrograms(file);
  const Archive archive = ReadZip(file);
  const std::string folder = Folder(archive);
  RequireLittleEndian(archive, folder);
  Saved saved{ReadPickle(archive.at(folder + "data.pkl")), {}};
  const std::string data = folder + "data/";
  for (auto at = archive.lower_bound(data); at != archive.end() && at->first.starts_with(data); ++at)
    saved.storages.emplace(at->first.substr(data.size()), at->second);
  return saved;
}

// --- The stream of PyTorch before 1.6: a magic number, a version and the machine's properties, each a
// pickle; the state_dict; a list of the storages' keys; and in its order the elements of the storages.

// The pickles of the magic number and of version 1001.
constexpr std::string_view kStreamStart(
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.", 21);

void RequireLittleEndian(const Pickle& machine) {
  const PickleValue& root = machine.at(machine.root);
  if (root.kind != Kind::kDict) Fail("the file does not say its byte order");
  for (size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const PickleValue& value = machine.at(root.items[i + 1]);
    if (machine.at(root.items[i]).text != "little_endian" || value.kind != Kind::kBool) continue;
    if (value.integer != 0) return;
    Fail("its byte order is 'big'; only 'little' is supported");
  }
  Fail("the file does not say its byte order");
}

// Returns the storages of a pickle by key. Two with one key have the same type and number of elements.
std::map<std::string_view, const PickleValue*> StoragesOf(const Pickle& pickle) {
  std::map<std::string_view, const PickleValue*> storages;
  for (const PickleValue& value : pickle.values) {
    if (value.kind != Kind::kStorage) continue;
    const PickleValue& first = *storages.emplace(value.text, &value).first->second;
    if (first.type != value.type || first.extent != value.extent)
      Fail("storage " + Quote(value.text) + " has two types or sizes");
  }
  return storages;
}

// Removes a storage from the front of `stream`, its number of elements included, and returns its elements.
Bytes TakeStorage(const PickleValue& storage, Bytes& stream) {
  const std::string where = "storage " + Quote(storage.text) + ": ";
  if (stream.size() < sizeof(uint64_t)) Fail(where + "the file was cut short");
  uint64_t elements = 0;
  for (size_t i = 0; i < sizeof(elements); ++i) elements |= std::to_integer<uint64_t>(stream[i]) << (8 * i);
  stream = stream.subspan(sizeof(elements));
  if (elements != static_cast<uint64_t>(storage.extent)) {
    Fail(where + "it should hold " + std::to_string(storage.extent) + " elements, but says that it has " +
         std::to_string(elements));
  }
  const auto size = static_cast<uint64_t>(Info(storage.type).size);
  if (elements > stream.size() / size) Fail(where + "the file was cut short");
  const Bytes taken = stream.first(elements * size);
  stream = stream.subspan(taken.size());
  return taken;
}

Saved ReadStream(Bytes file) {
  Bytes stream = file.subspan(kStreamStart.size());
  RequireLittleEndian(ReadFirstPickle(stream));
  Saved saved{ReadFirstPickle(stream), {}};
  const Pickle keys = ReadFirstPickle(stream);
  if (keys.at(keys.root).kind != Kind::kList) Fail("the file has no list of its storages");
  const std::map<std::string_view, const PickleValue*> storages = StoragesOf(saved.pickle);
  for (const uint32_t item : keys.at(keys.root).items) {
    const PickleValue& key = keys.at(item);
    const auto found = storages.find(key.text);
    if (key.kind != Kind::kString || found == storages.end()) {
      Fail("its list of storages has " + Quote(key.text) + ", which no tensor has");
    }
    if (!saved.storages.emplace(key.text, TakeStorage(*found->second, stream)).second)
      Fail("storage " + Quote(key.text) + " occurs twice");
  }
  if (!stream.empty()) Fail("the file has data after its last storage");
  return saved;
}

Saved Read(Bytes file) {
  const std::string_view start(reinterpret_cast<const char*>(file.data()), file.size());
  if (start.starts_with(kStreamStart)) return ReadStream(file);
  if (start.starts_with("\x80"))
    Fail(
        "the file is a pickle that torch.save did not write; expected one written by torch.save, or "
        "safetensors");
  return ReadArchive(file);
}

}  // namespace

std::vector<TensorEntry> ParseStateDict(Bytes file) {
  const Saved saved = Read(file);
  const Pickle& pickle = saved.pickle;
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
    entries.push_back(MakeEntry(name, saved, value));
  }
  return entries;
}

}  // namespace saccade::models
