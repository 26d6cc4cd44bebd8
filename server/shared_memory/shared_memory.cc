#include "server/shared_memory/shared_memory.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "models/api/text.h"
#include "server/core/client_key.h"
#include "server/core/errors.h"
#include "server/core/retry_hint.h"
#include "server/shared_memory/shared_file.h"

namespace saccade::server {
namespace {

constexpr size_t kMaxRegionNameBytes = 256;

// Retry hint of a registration: another one may end at any time.
constexpr absl::Duration kRetryRegistration = absl::Seconds(1);

std::string RegionSubject(absl::string_view name) {
  return absl::StrCat("shared memory region '", absl::CHexEscape(name.substr(0, kMaxRegionNameBytes)), "'");
}

std::string OwnerOf(absl::string_view client) { return IsTokenKey(client) ? std::string(client) : ""; }

// Whether [offset, offset + size) lies within [0, room). Does not overflow.
bool Fits(uint64_t offset, uint64_t size, uint64_t room) { return size <= room && offset <= room - size; }

absl::Status Off() {
  return absl::UnimplementedError(
      "shared memory is disabled; start saccaded with --allow-shared-memory to use it");
}

absl::Status NoGpu() {
  return absl::UnimplementedError(
      "CUDA shared memory is not available, because saccaded uses no GPU (its log says why when it starts); "
      "send the bytes, or use system shared memory");
}

// RESOURCE_EXHAUSTED with a retry hint.
absl::Status TooManyRegions(absl::string_view why) {
  absl::Status full = absl::ResourceExhaustedError(absl::StrCat(why, ", the maximum; unregister one first"));
  SetRetryAfter(full, kRetryRegistration);
  return full;
}

absl::Status CheckRegion(const SharedRegion& region) {
  if (region.name.empty() || region.name.size() > kMaxRegionNameBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the region's name has ", region.name.size(),
                                                   " bytes; expected 1 to ", kMaxRegionNameBytes));
  }
  if (!models::IsUtf8(region.name))
    return absl::InvalidArgumentError(
        absl::StrCat("the region's name is ", Shown(region.name),
                     ", which is not UTF-8; expected text that clients can read"));
  if (region.size == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(RegionSubject(region.name), ": byte_size is 0; expected at least 1"));
  }
  return absl::OkStatus();
}

}  // namespace

struct SharedMemory::Open {
  SharedRegion region;
  std::unique_ptr<const RegionMemory> memory;
};

SharedMemory::SharedMemory(Options options) : options_(std::move(options)) {}

SharedMemory::~SharedMemory() = default;

absl::Status SharedMemory::CanRegister(RegionKind kind) const {
  if (!options_.allowed) return Off();
  return kind == RegionKind::kCuda && options_.gpus.ipc == nullptr ? NoGpu() : absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<const RegionMemory>> SharedMemory::OpenMemory(
    const SharedRegion& region) const {
  if (region.gpu) {
    auto memory = CudaMemory::Open(options_.gpus, *region.gpu, region.key, region.size);
    if (!memory.ok()) return memory.status();
    return *std::move(memory);
  }
  auto file = SharedFile::Open(options_.folder, region.key);
  if (!file.ok()) return file.status();
  const auto size = file->Size();
  if (!size.ok()) return size.status();
  if (!Fits(region.offset, region.size, *size)) {
    return absl::InvalidArgumentError(
        absl::StrCat(RegionSubject(region.name), ": byte_size ", region.size, " from offset ", region.offset,
                     " exceeds the shared memory, which has ", *size, " bytes"));
  }
  return std::make_unique<SharedFile>(*std::move(file));
}

absl::Status SharedMemory::Register(const SharedRegion& region, absl::string_view client) {
  if (absl::Status can = CanRegister(region.kind()); !can.ok()) return can;
  if (absl::Status sane = CheckRegion(region); !sane.ok()) return sane;
  auto memory = OpenMemory(region);
  if (!memory.ok()) return memory.status();
  // Destroyed after the lock is released, if it is not kept.
  const auto open = std::make_shared<const Open>(Open{region, *std::move(memory)});
  const std::string owner = OwnerOf(client);
  const absl::MutexLock lock(&mutex_);
  if (!owner.empty() && RegionsOf(owner) >= options_.max_regions_of_token) {
    return TooManyRegions(
        absl::StrCat("the token has ", options_.max_regions_of_token, " shared memory regions"));
  }
  if (regions_.size() >= options_.max_regions) {
    return TooManyRegions(absl::StrCat(regions_.size(), " shared memory regions are registered"));
  }
  if (!regions_.emplace(std::make_pair(owner, region.name), open).second) {
    return absl::AlreadyExistsError(
        absl::StrCat(RegionSubject(region.name), " is registered already; unregister it first"));
  }
  return absl::OkStatus();
}

void SharedMemory::Unregister(absl::string_view name, absl::string_view client, RegionKind kind) {
  const std::string owner = OwnerOf(client);
  // Destroyed after the lock is released, because that closes files and memory on GPUs.
  Regions gone;
  const absl::MutexLock lock(&mutex_);
  for (auto at = regions_.lower_bound({owner, std::string(name)}); at != regions_.end();) {
    const auto region = at++;
    if (region->first.first != owner || (!name.empty() && region->first.second != name)) break;
    if (region->second->region.kind() == kind) gone.insert(regions_.extract(region));
  }
}

void SharedMemory::KeepTokens(const absl::flat_hash_set<absl::string_view>& keys) {
  // Destroyed after the lock is released, because that closes files and memory on GPUs.
  Regions gone;
  const absl::MutexLock lock(&mutex_);
  for (auto at = regions_.begin(); at != regions_.end();) {
    const auto region = at++;
    const std::string& owner = region->first.first;
    if (!owner.empty() && !keys.contains(owner)) gone.insert(regions_.extract(region));
  }
}

size_t SharedMemory::RegionsOf(const std::string& owner) const {
  size_t regions = 0;
  for (auto at = regions_.lower_bound({owner, ""}); at != regions_.end() && at->first.first == owner; ++at) {
    ++regions;
  }
  return regions;
}

absl::StatusOr<std::vector<SharedRegion>> SharedMemory::Status(absl::string_view name,
                                                               absl::string_view client,
                                                               RegionKind kind) const {
  const std::string owner = OwnerOf(client);
  const absl::MutexLock lock(&mutex_);
  std::vector<SharedRegion> list;
  for (const auto& [known, open] : regions_) {
    const bool asked = open->region.kind() == kind && (name.empty() || name == known.second);
    if (known.first == owner && asked) list.push_back(open->region);
  }
  if (list.empty() && !name.empty()) {
    return absl::NotFoundError(absl::StrCat(kind == RegionKind::kCuda ? "CUDA " : "system ",
                                            RegionSubject(name), " is not registered"));
  }
  return list;
}

absl::StatusOr<SharedMemory::Held> SharedMemory::Hold(const SharedRange& range,
                                                      absl::string_view client) const {
  if (!options_.allowed) return Off();
  std::shared_ptr<const Open> open;
  {
    const absl::MutexLock lock(&mutex_);
    const auto found = regions_.find({OwnerOf(client), range.region});
    if (found == regions_.end()) {
      return absl::NotFoundError(absl::StrCat(RegionSubject(range.region), " is not registered"));
    }
    open = found->second;
  }
  if (!Fits(range.offset, range.size, open->region.size)) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared_memory_byte_size ", range.size, " from shared_memory_offset ", range.offset,
                     " exceeds ", RegionSubject(range.region), ", which has ", open->region.size, " bytes"));
  }
  if (range.size > options_.max_tensor_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("shared_memory_byte_size is ", range.size,
                                                   ", more than --max-message-bytes ",
                                                   options_.max_tensor_bytes));
  }
  return open;
}

absl::Status SharedMemory::Check(const SharedRange& range, absl::string_view client) const {
  return Hold(range, client).status();
}

absl::StatusOr<BytePieces> SharedMemory::Read(const SharedRange& range, absl::string_view client) const {
  const auto open = Hold(range, client);
  if (!open.ok()) return open.status();
  const size_t size = range.size;
  // Not value-initialised: Read() overwrites all of it.
  const std::shared_ptr<char[]> bytes(new char[size]);
  absl::Status read = (*open)->memory->Read((*open)->region.offset + range.offset, size, bytes.get());
  if (!read.ok()) return read;
  return BytePieces({bytes.get(), size}, bytes);
}

bool SharedMemory::IsOnGpu(const Held& region) { return region->region.kind() == RegionKind::kCuda; }

absl::Status SharedMemory::Write(const Held& region, const SharedRange& range, const BytePieces& bytes) {
  if (bytes.size() > range.size) {
    return absl::InvalidArgumentError(
        absl::StrCat("shared_memory_byte_size is ", range.size, "; the output has ", bytes.size(), " bytes"));
  }
  uint64_t at = region->region.offset + range.offset;
  for (const std::string_view piece : bytes.pieces()) {
    absl::Status written = region->memory->Write(at, {piece.data(), piece.size()});
    if (!written.ok()) return written;
    at += piece.size();
  }
  return absl::OkStatus();
}

}  // namespace saccade::server
