#include "models/weights/format/zip_reader.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "models/api/error.h"
#include "models/api/text.h"

namespace saccade::models {
namespace {

constexpr uint32_t kLocalHeader = 0x04034b50;
constexpr uint32_t kCentralHeader = 0x02014b50;
constexpr uint32_t kEndOfDirectory = 0x06054b50;
constexpr size_t kLocalHeaderBytes = 30;
constexpr size_t kCentralHeaderBytes = 46;
constexpr size_t kEndOfDirectoryBytes = 22;

[[noreturn]] void FailArchive(const std::string& message) {
  throw LoadError("state_dict: zip archive: " + message);
}

uint64_t Little(Bytes file, size_t at, size_t size) {
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i) value |= std::to_integer<uint64_t>(file[at + i]) << (8 * i);
  return value;
}

// Returns a part of the file. Throws a LoadError that names it if the file is too short.
Bytes Part(Bytes file, uint64_t begin, uint64_t size, const std::string& what) {
  if (begin > file.size() || size > file.size() - begin)
    FailArchive(what + " reaches beyond the file. It was cut short");
  return file.subspan(begin, size);
}

std::string_view Text(Bytes bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string name;
};

struct Directory {
  uint64_t entries = 0;
  uint64_t begin = 0;
  uint64_t size = 0;
};

Directory FindDirectory(Bytes file) {
  if (file.size() < kEndOfDirectoryBytes) FailArchive("it was cut short");
  const size_t at = file.size() - kEndOfDirectoryBytes;
  if (Little(file, at, 4) != kEndOfDirectory)
    FailArchive("it does not end with its directory. It was cut short");
  const Directory directory{Little(file, at + 10, 2), Little(file, at + 16, 4), Little(file, at + 12, 4)};
  if (directory.entries == 0xFFFF || directory.begin == 0xFFFFFFFF || directory.size == 0xFFFFFFFF) {
    FailArchive("it has more than 65,534 entries or is beyond 4 GiB; save such weights as safetensors");
  }
  if (directory.begin + directory.size > at) FailArchive("its directory reaches beyond the file");
  return directory;
}

// Returns where the contents are to which one record of the central directory points.
Range Locate(Bytes file, Bytes record, uint64_t directory_begin) {
  const size_t name_bytes = Little(record, 28, 2);
  Range entry{0, 0, std::string(Text(Part(record, kCentralHeaderBytes, name_bytes, "a name")))};
  const std::string quoted = Quote(entry.name);
  if ((Little(record, 8, 2) & 1) != 0) FailArchive("entry " + quoted + " is encrypted");
  if (Little(record, 10, 2) != 0)
    FailArchive("entry " + quoted + " is compressed; torch.save stores its entries");
  const uint64_t size = Little(record, 24, 4);
  if (Little(record, 20, 4) != size)
    FailArchive("entry " + quoted + " is stored, but has two different sizes");

  const uint64_t begin = Little(record, 42, 4);
  const Bytes local = Part(file, begin, kLocalHeaderBytes, "entry " + quoted);
  if (Little(local, 0, 4) != kLocalHeader)
    FailArchive("entry " + quoted + " has no header where the directory points");
  const uint64_t local_name_bytes = Little(local, 26, 2);
  const Bytes local_name = Part(file, begin + kLocalHeaderBytes, local_name_bytes, "entry " + quoted);
  if (Text(local_name) != entry.name) FailArchive("entry " + quoted + " has another name in its own header");
  entry.begin = begin + kLocalHeaderBytes + local_name_bytes + Little(local, 28, 2);
  entry.end = entry.begin + size;
  if (entry.end > directory_begin)
    FailArchive("entry " + quoted + " reaches into the directory. It was cut short");
  return entry;
}

void RefuseOverlaps(std::vector<Range> entries) {
  std::sort(entries.begin(), entries.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < entries.size(); ++i) {
    if (entries[i].begin < entries[i - 1].end) {
      FailArchive("entries " + Quote(entries[i - 1].name) + " and " + Quote(entries[i].name) + " overlap");
    }
  }
}

// Returns the records of the central directory.
std::vector<Bytes> RecordsOf(Bytes file, const Directory& directory) {
  Bytes left = file.subspan(directory.begin, directory.size);
  std::vector<Bytes> records;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    if (left.size() < kCentralHeaderBytes || Little(left, 0, 4) != kCentralHeader) {
      FailArchive("its directory is damaged at entry " + std::to_string(i));
    }
    const uint64_t record_bytes =
        kCentralHeaderBytes + Little(left, 28, 2) + Little(left, 30, 2) + Little(left, 32, 2);
    records.push_back(Part(left, 0, record_bytes, "an entry of its directory"));
    left = left.subspan(record_bytes);
  }
  if (!left.empty()) FailArchive("its directory has bytes after the last entry");
  return records;
}

}  // namespace

std::vector<std::string> ZipNames(Bytes file) {
  std::vector<std::string> names;
  for (const Bytes record : RecordsOf(file, FindDirectory(file))) {
    names.emplace_back(Text(Part(record, kCentralHeaderBytes, Little(record, 28, 2), "a name")));
  }
  return names;
}

std::map<std::string, Bytes> ReadZip(Bytes file) {
  const Directory directory = FindDirectory(file);
  std::map<std::string, Bytes> contents;
  std::vector<Range> ranges;
  for (const Bytes record : RecordsOf(file, directory)) {
    const Range entry = Locate(file, record, directory.begin);
    if (!contents.emplace(entry.name, file.subspan(entry.begin, entry.end - entry.begin)).second) {
      FailArchive("it contains " + Quote(entry.name) + " twice");
    }
    ranges.push_back(entry);
  }
  RefuseOverlaps(std::move(ranges));
  return contents;
}

}  // namespace saccade::models
