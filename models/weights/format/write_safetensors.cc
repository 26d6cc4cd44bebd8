#include "models/weights/format/write_safetensors.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "models/api/error.h"

namespace saccade::models {
namespace {

std::string JsonText(const std::string& text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string json = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else if (byte < 0x20) {
      json += "\\u00";
      json += kDigits[byte >> 4];
      json += kDigits[byte & 15];
    } else {
      json += c;
    }
  }
  return json + "\"";
}

std::string MetadataJson(const std::map<std::string, std::string>& metadata) {
  std::string json;
  for (const auto& [key, value] : metadata)
    json += (json.empty() ? "" : ",") + JsonText(key) + ":" + JsonText(value);
  return "\"__metadata__\":{" + json + "}";
}

// The length of the header, and the header itself, padded so that the data is aligned.
std::string Header(const std::vector<TensorToWrite>& tensors,
                   const std::map<std::string, std::string>& metadata) {
  std::string json = "{";
  if (!metadata.empty()) json += MetadataJson(metadata);
  size_t begin = 0;
  for (const TensorToWrite& tensor : tensors) {
    const size_t end = begin + tensor.bytes.size();
    if (json.size() > 1) json += ',';
    json += JsonText(tensor.name) + ":{\"dtype\":\"" + Info(tensor.type).safetensors_name +
            "\",\"shape\":" + ShapeText(tensor.shape) + ",\"data_offsets\":[" + std::to_string(begin) + "," +
            std::to_string(end) + "]}";
    begin = end;
  }
  json += '}';
  json.resize((json.size() + 7) / 8 * 8, ' ');
  std::string length(8, '\0');
  for (size_t i = 0; i < 8; ++i) length[i] = static_cast<char>((json.size() >> (8 * i)) & 0xFF);
  return length + json;
}

// A file under construction, removed unless it gets its name.
class PartialFile {
 public:
  explicit PartialFile(const std::string& path) : path_(path), partial_(path + ".partial") {
    descriptor_ = open(partial_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (descriptor_ < 0) Fail();
  }
  PartialFile(const PartialFile&) = delete;
  PartialFile& operator=(const PartialFile&) = delete;
  ~PartialFile() {
    if (descriptor_ < 0) return;
    close(descriptor_);
    unlink(partial_.c_str());
  }

  void Write(const std::string& bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t written = write(descriptor_, bytes.data() + done, bytes.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) Fail();
      done += static_cast<size_t>(written);
    }
  }

  void TakeName() {
    if (fsync(descriptor_) != 0 || rename(partial_.c_str(), path_.c_str()) != 0) Fail();
    close(descriptor_);
    descriptor_ = -1;
    // The name is safe once the folder is on the disk too; not every file system can say so.
    const std::string folder = std::filesystem::absolute(path_).parent_path().string();
    if (const int opened = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); opened >= 0) {
      fsync(opened);
      close(opened);
    }
  }

 private:
  [[noreturn]] void Fail() const { throw LoadError(path_ + ": cannot be written: " + std::strerror(errno)); }

  const std::string path_, partial_;
  int descriptor_ = -1;
};

}  // namespace

void WriteSafetensors(std::vector<TensorToWrite> tensors, const std::string& path,
                      const std::map<std::string, std::string>& metadata) {
  // The largest elements first, so that all are aligned.
  std::stable_sort(tensors.begin(), tensors.end(), [](const TensorToWrite& a, const TensorToWrite& b) {
    return Info(a.type).size > Info(b.type).size;
  });
  PartialFile file(path);
  file.Write(Header(tensors, metadata));
  for (const TensorToWrite& tensor : tensors) file.Write(tensor.bytes);
  file.TakeName();
}

std::string DenseBytes(const TensorEntry& entry) {
  const auto size = static_cast<size_t>(Info(entry.type).size);
  int64_t count = 1;
  for (const int64_t side : entry.shape) count *= side;
  std::string bytes(static_cast<size_t>(count) * size, '\0');
  std::vector<int64_t> index(entry.shape.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    int64_t offset = 0;
    for (size_t side = 0; side < index.size(); ++side) offset += index[side] * entry.strides[side];
    std::memcpy(bytes.data() + static_cast<size_t>(i) * size, entry.data + static_cast<size_t>(offset) * size,
                size);
    // The last side counts fastest.
    for (size_t side = index.size(); side > 0; --side) {
      if (++index[side - 1] < entry.shape[side - 1]) break;
      index[side - 1] = 0;
    }
  }
  return bytes;
}

}  // namespace saccade::models
