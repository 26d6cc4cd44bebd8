#include "models/weights/format/testing/files.h"

namespace saccade::models::testing {

Bytes AsBytes(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }

std::string Little(uint64_t value, int size) {
  std::string text;
  for (int i = 0; i < size; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::string Safetensors(const std::string& header, const std::string& data) {
  return Little(header.size(), 8) + header + data;
}

std::string Zip(const std::vector<ZipEntry>& entries) {
  std::string file;
  std::string directory;
  for (const ZipEntry& entry : entries) {
    const std::string sizes = Little(entry.contents.size(), 4) + Little(entry.contents.size(), 4);
    const uint64_t begin = file.size();
    // The local header's sizes stay zero, as in torch.save's files: the directory has them.
    file += "PK\x03\x04" + std::string(22, '\0') + Little(entry.name.size(), 2) + Little(0, 2) + entry.name +
            entry.contents;
    directory += "PK\x01\x02" + std::string(16, '\0') + sizes + Little(entry.name.size(), 2) +
                 std::string(12, '\0') + Little(begin, 4) + entry.name;
  }
  const uint64_t count = entries.size();
  return file + directory + "PK\x05\x06" + Little(0, 4) + Little(count, 2) + Little(count, 2) +
         Little(directory.size(), 4) + Little(file.size(), 4) + Little(0, 2);
}

std::string SavedStream(const std::string& pickle, const std::vector<StreamStorage>& storages) {
  using std::string_literals::operator""s;
  std::string keys = "\x80\x02](";
  std::string data;
  for (const StreamStorage& storage : storages) {
    keys += PickledText(storage.key);
    data += Little(storage.elements, 8) + storage.bytes;
  }
  return "\x80\x02\x8a\n\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."s +
         PickledDict({{"protocol_version", PickledInt(1001)}, {"little_endian", "\x88"}}) + pickle + keys +
         "e." + data;
}

std::string PickledText(const std::string& text) { return "X" + Little(text.size(), 4) + text; }

std::string PickledInt(int32_t value) { return "J" + Little(static_cast<uint32_t>(value), 4); }

std::string PickledTuple(const std::vector<int32_t>& numbers) {
  std::string text = "(";
  for (const int32_t number : numbers) text += PickledInt(number);
  return text + "t";
}

std::string PickledTensor(const std::string& storage_class, const std::string& key, int32_t elements,
                          int32_t offset, const std::vector<int32_t>& shape,
                          const std::vector<int32_t>& strides) {
  const std::string storage = "(" + PickledText("storage") + "ctorch\n" + storage_class + "\n" +
                              PickledText(key) + PickledText("cpu") + PickledInt(elements) + "tQ";
  return "ctorch._utils\n_rebuild_tensor_v2\n(" + storage + PickledInt(offset) + PickledTuple(shape) +
         PickledTuple(strides) + "\x89" + "ccollections\nOrderedDict\n)RtR";
}

std::string PickledDict(const std::vector<std::pair<std::string, std::string>>& items) {
  std::string text = "\x80\x02}(";
  for (const auto& [name, value] : items) text += PickledText(name) + value;
  return text + "u.";
}

std::string SmallSafetensors() {
  return Safetensors(
      R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
      R"("b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}}  )",
      std::string(32, '\x01'));
}

namespace {

std::string SmallPickle() {
  return PickledDict({{"a", PickledTensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1})},
                      {"b", PickledTensor("LongStorage", "1", 1, 0, {}, {})}});
}

}  // namespace

std::string SmallSavedStream() {
  return SavedStream(SmallPickle(), {{"0", 6, std::string(24, '\x01')}, {"1", 1, std::string(8, '\x02')}});
}

std::string SmallStateDict() {
  return Zip({{"w/data.pkl", SmallPickle()},
              {"w/byteorder", "little"},
              {"w/data/0", std::string(24, '\x01')},
              {"w/data/1", std::string(8, '\x02')}});
}

}  // namespace saccade::models::testing
