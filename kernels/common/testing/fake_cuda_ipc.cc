#include "kernels/common/testing/fake_cuda_ipc.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

using saccade::kernels::CudaIpcOutcome;
using saccade::kernels::kCudaIpcHandleBytes;
using saccade::kernels::OpenedCudaMemory;

struct FakeBlock {
  int file;
  std::string path;
};

// A sticky error.
constexpr CudaIpcOutcome kIllegalAccess = {"an illegal memory access was encountered", /*gpu_failed=*/true};

std::atomic<int> open_blocks = 0;

void Note(const char* what, const std::string& path) {
  const char* const log = std::getenv("SACCADE_FAKE_CUDA_IPC_LOG");
  if (log == nullptr) return;
  if (std::FILE* const file = std::fopen(log, "a")) {
    std::fprintf(file, "%s %s\n", what, path.c_str());
    std::fclose(file);
  }
}

CudaIpcOutcome FakeOpen(int /*gpu*/, const void* handle, OpenedCudaMemory* opened) {
  std::array<char, kCudaIpcHandleBytes + 1> text{};
  std::memcpy(text.data(), handle, kCudaIpcHandleBytes);
  std::array<char, kCudaIpcHandleBytes + 1> path{};
  int gpu = 0;
  int process = 0;
  if (std::sscanf(text.data(), "GPU %d PROCESS %d %64s", &gpu, &process, path.data()) != 3)
    return {"invalid argument"};
  // CUDA does not open a handle in the process that made it.
  if (process == getpid()) return {"invalid device context"};
  const int file = open(path.data(), O_RDWR | O_CLOEXEC);
  struct stat found{};
  if (file < 0 || fstat(file, &found) != 0) return {"invalid resource handle"};
  *opened = {
      .block = new FakeBlock{file, path.data()}, .gpu = gpu, .size = static_cast<uint64_t>(found.st_size)};
  ++open_blocks;
  Note("open", path.data());
  return {};
}

void FakeClose(void* opened) {
  const auto* const block = static_cast<const FakeBlock*>(opened);
  close(block->file);
  Note("close", block->path);
  --open_blocks;
  delete block;
}

CudaIpcOutcome FakeRead(void* opened, uint64_t offset, size_t size, void* to) {
  const int file = static_cast<const FakeBlock*>(opened)->file;
  const bool whole = pread(file, to, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  return whole ? CudaIpcOutcome() : kIllegalAccess;
}

CudaIpcOutcome FakeWrite(void* opened, uint64_t offset, size_t size, const void* from) {
  const int file = static_cast<const FakeBlock*>(opened)->file;
  struct stat found{};
  const bool fits = fstat(file, &found) == 0 && offset + size <= static_cast<uint64_t>(found.st_size);
  const bool whole =
      fits && pwrite(file, from, size, static_cast<off_t>(offset)) == static_cast<ssize_t>(size);
  return whole ? CudaIpcOutcome() : kIllegalAccess;
}

}  // namespace

extern "C" {

const saccade::kernels::CudaIpc* saccade_cuda_ipc() {
  static constexpr saccade::kernels::CudaIpc kFakes = {
      .open = FakeOpen, .close = FakeClose, .read = FakeRead, .write = FakeWrite};
  return &kFakes;
}

int saccade_fake_cuda_ipc_blocks() { return open_blocks; }

}  // extern "C"
