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

// Closes the file on destruction.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

[[noreturn]] void FailChanged(const std::string& path, size_t before, size_t after) {
  throw LoadError(path + ": had " + std::to_string(before) + " bytes when it was opened and has " +
                  std::to_string(after) + (after < before ? ": it was cut short" : ": it grew") +
                  " while it was read. Copy the file under another name, and rename it when it is complete");
}

size_t SizeNow(const Descriptor& file, const std::string& path) {
  struct stat status{};
  if (fstat(file.number, &status) != 0) FailWithErrno(path, "cannot get the status of the weights");
  return static_cast<size_t>(status.st_size);
}

// Reads the bytes [begin, end) of a file to the same place of `memory`, which has the file's size.
void ReadPart(const Descriptor& file, const std::string& path, size_t begin, size_t end,
              std::span<std::byte> memory) {
  while (begin < end) {
    const ssize_t got = pread(file.number, memory.data() + begin, end - begin, static_cast<off_t>(begin));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) FailWithErrno(path, "cannot read the weights");
    if (got == 0) FailChanged(path, memory.size(), std::min(begin, SizeNow(file, path)));
    begin += static_cast<size_t>(got);
  }
}

}  // namespace

std::shared_ptr<const FileContents> FileContents::Read(const std::string& path, int64_t max_bytes,
                                                       const Wanted& wanted) {
  // O_NONBLOCK: opening a pipe must not wait for its writer.
  const Descriptor file{open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  if (file.number < 0) FailWithErrno(path, "cannot open the weights");
  struct stat status{};
  if (fstat(file.number, &status) != 0) FailWithErrno(path, "cannot get the status of the weights");
  if (!S_ISREG(status.st_mode)) throw LoadError(path + ": is not a regular file; expected weights");
  if (status.st_size == 0) throw LoadError(path + ": is empty; expected weights");
  if (status.st_size > max_bytes) {
    throw LoadError(path + ": has " + std::to_string(status.st_size) + " bytes; at most " +
                    std::to_string(max_bytes) + " are allowed");
  }
  const auto size = static_cast<size_t>(status.st_size);
  // The system's memory and not the allocator's: parts of it are given back one by one.
  void* const address =
      mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) FailWithErrno(path, "cannot allocate memory for the weights");
  const std::span<std::byte> memory(static_cast<std::byte*>(address), size);
  std::shared_ptr<const FileContents> contents(new FileContents(memory));
  const size_t beginning = std::min(size, kBeginningBytes);
  ReadPart(file, path, 0, beginning, memory);
  ReadPart(file, path, beginning, wanted ? std::min(size, wanted(memory.first(beginning))) : size, memory);
  // Also a file that is being copied here, of which only the first part is there.
  if (const size_t now = SizeNow(file, path); now != size) FailChanged(path, size, now);
  if (mprotect(address, size, PROT_READ) != 0) FailWithErrno(path, "cannot protect the weights");
  return contents;
}

void FileContents::LetGo(Bytes part) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + part.size()) / page * page;
  // madvise() is only advice: if the kernel ignores it, the pages stay until this object is destroyed.
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

FileContents::~FileContents() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace saccade::models
