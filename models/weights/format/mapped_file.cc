#include "models/weights/format/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
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

// Closes the file on destruction; the mapping outlives it.
struct Descriptor {
  int number;
  ~Descriptor() {
    if (number >= 0) close(number);
  }
};

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::Open(const std::string& path, int64_t max_bytes) {
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
  void* address = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.number, 0);
  if (address == MAP_FAILED) FailWithErrno(path, "cannot map the weights");
  return std::shared_ptr<const MappedFile>(new MappedFile({static_cast<const std::byte*>(address), size}));
}

void MappedFile::LetGo(Bytes part) const {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(part.data());
  const uintptr_t first = (begin + page - 1) / page * page;
  const uintptr_t end = (begin + part.size()) / page * page;
  // madvise() is only advice: if the kernel ignores it, the pages stay until the file is unmapped.
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

MappedFile::~MappedFile() { munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size()); }

}  // namespace saccade::models
