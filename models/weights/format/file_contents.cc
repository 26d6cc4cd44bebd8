#include "models/weights/format/file_contents.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>

#include "models/api/error.h"

namespace saccade::models {
namespace {

[[noreturn]] void FailWithErrno(const std::string& path, const std::string& what) {
  const int error = errno;
  // A file of mode 0600 in the folder of an image that runs as another user.
  const std::string advice = error == EACCES ? "; this process runs as user " + std::to_string(geteuid()) +
                                                   ": make the file readable to it (chmod a+r)"
                                             : "";
  throw LoadError(path + ": " + what + ": " + std::generic_category().message(error) + advice);
}

std::atomic<int64_t> held_by_all = 0;

}  // namespace

OpenFile::OpenFile(const std::string& path, int64_t max_bytes)
    // O_NONBLOCK: opening a pipe must not wait for its writer.
    : path_(path), number_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (number_ < 0) FailWithErrno(path, "cannot open the weights");
  try {
    struct stat status{};
    if (fstat(number_, &status) != 0) FailWithErrno(path, "cannot get the status of the weights");
    if (!S_ISREG(status.st_mode)) throw LoadError(path + ": is not a regular file; expected weights");
    if (status.st_size == 0) throw LoadError(path + ": is empty; expected weights");
    if (status.st_size > max_bytes) {
      throw LoadError(path + ": has " + std::to_string(status.st_size) + " bytes; at most " +
                      std::to_string(max_bytes) + " are allowed");
    }
    size_ = static_cast<size_t>(status.st_size);
  } catch (...) {
    // There is no destructor's call for an object that was not made.
    close(number_);
    throw;
  }
}

OpenFile::~OpenFile() { close(number_); }

void OpenFile::Read(size_t begin, std::span<std::byte> memory) const {
  while (!memory.empty()) {
    const ssize_t got = pread(number_, memory.data(), memory.size(), static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) FailWithErrno(path_, "cannot read the weights");
    if (got == 0) FailChanged(std::min(begin, SizeNow()));
    begin += static_cast<size_t>(got);
    memory = memory.subspan(static_cast<size_t>(got));
  }
}

void OpenFile::CheckSize() const {
  if (const size_t now = SizeNow(); now != size_) FailChanged(now);
}

size_t OpenFile::SizeNow() const {
  struct stat status{};
  if (fstat(number_, &status) != 0) FailWithErrno(path_, "cannot get the status of the weights");
  return static_cast<size_t>(status.st_size);
}

void OpenFile::FailChanged(size_t now) const {
  throw LoadError(path_ + ": had " + std::to_string(size_) + " bytes when it was opened and has " +
                  std::to_string(now) + (now < size_ ? ": it was cut short" : ": it grew") +
                  " while it was read. Copy the file under another name, and rename it when it is complete");
}

std::shared_ptr<const FileContents> FileContents::Read(const std::string& path, int64_t max_bytes,
                                                       const Wanted& wanted) {
  const OpenFile file(path, max_bytes);
  const size_t size = file.size();
  // The system's memory and not the allocator's: parts of it are given back one by one.
  void* const address =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) FailWithErrno(path, "cannot allocate memory for the weights");
  const std::span<std::byte> memory(static_cast<std::byte*>(address), size);
  const std::shared_ptr<FileContents> contents(new FileContents(memory));
  const size_t beginning = std::min(size, kBeginningBytes);
  file.Read(0, memory.first(beginning));
  const size_t end = wanted ? std::clamp(wanted(memory.first(beginning)), beginning, size) : size;
  contents->Hold(end);
  file.Read(beginning, memory.subspan(beginning, end - beginning));
  // Also a file that is being copied here, of which only the first part is there.
  file.CheckSize();
  if (mprotect(address, size, PROT_READ) != 0) FailWithErrno(path, "cannot protect the weights");
  return contents;
}

int64_t FileContents::HeldByAll() { return held_by_all.load(); }

void FileContents::Hold(size_t bytes) {
  held_ += bytes;
  held_by_all += static_cast<int64_t>(bytes);
}

void FileContents::Release(size_t bytes) const {
  size_t held = held_.load();
  while (!held_.compare_exchange_weak(held, held - std::min(held, bytes))) {
  }
  held_by_all -= static_cast<int64_t>(std::min(held, bytes));
}

void FileContents::LetGo(Bytes part) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + part.size()) / page * page;
  // madvise() is only advice: if the kernel ignores it, the pages stay until this object is destroyed.
  if (first < end && madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED) == 0)
    Release(end - first);
}

FileContents::~FileContents() {
  munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  Release(held_.load());
}

}  // namespace saccade::models
