#include "server/shared_memory/cuda_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/common/testing/fake_cuda_ipc.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;

class CudaMemoryTest : public ::testing::Test {
 protected:
  // A short path, which fits into a handle.
  CudaMemoryTest() : path_(absl::StrCat("/dev/shm/saccade_gpu_", getpid())) {
    std::ofstream(path_) << "0123456789";
    options_ = {.allowed = true,
                .max_tensor_bytes = 8,
                .max_regions = 3,
                .gpus = {.ipc = saccade_cuda_ipc(), .count = 2}};
  }

  ~CudaMemoryTest() override {
    fs::remove(path_);
    EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 0) << "memory was not closed";
  }

  // The handle of memory that another process allocated on GPU 1.
  std::string Handle(int gpu = 1, int process = getppid()) const {
    std::string handle = absl::StrCat("GPU ", gpu, " PROCESS ", process, " ", path_.string());
    handle.resize(kernels::kCudaIpcHandleBytes);
    return handle;
  }

  SharedRegion Region(const std::string& name, uint64_t size = 10) const {
    return {.name = name, .key = Handle(), .size = size, .gpu = 1};
  }

  std::string Content() const {
    std::ifstream file(path_);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  const fs::path path_;
  SharedMemory::Options options_;
};

std::string TextOf(const BytePieces& bytes) {
  std::string text(bytes.size(), '\0');
  bytes.CopyTo(text.data());
  return text;
}

std::vector<std::string> Names(const SharedMemory& memory, RegionKind kind) {
  const auto regions = memory.Status("", "", kind);
  std::vector<std::string> names;
  for (const SharedRegion& region : *regions) names.push_back(region.name);
  return names;
}

TEST_F(CudaMemoryTest, RegionsAreReadAndWritten) {
  SharedMemory memory(options_);
  ASSERT_EQ(memory.Register(Region("r")), absl::OkStatus());
  const SharedRange range = {.region = "r", .offset = 2, .size = 4};
  EXPECT_EQ(TextOf(*memory.Read(range)), "2345");
  const auto held = memory.Hold(range);
  ASSERT_TRUE(held.ok()) << held.status();
  BytePieces bytes(std::string_view("AB"));
  bytes.Add("C");
  EXPECT_EQ(SharedMemory::Write(*held, range, bytes), absl::OkStatus());
  EXPECT_EQ(Content(), "01ABC56789");
  EXPECT_EQ(memory.Read({.region = "r", .offset = 10, .size = 0})->size(), 0U);
  EXPECT_EQ(memory.Status("r", "", RegionKind::kCuda)->at(0).gpu, 1);
}

TEST_F(CudaMemoryTest, BadHandlesAreRefusedAndClosed) {
  SharedMemory memory(options_);
  struct Case {
    SharedRegion region;
    std::string reason;
  };
  SharedRegion good = Region("r");
  std::vector<Case> cases;
  const auto add = [&](SharedRegion region, const std::string& reason) {
    cases.push_back({std::move(region), reason});
  };
  for (const std::string& handle : {std::string(), Handle().substr(0, 63), Handle() + "x"}) {
    SharedRegion region = good;
    region.key = handle;
    add(region, absl::StrCat("raw_handle has ", handle.size(), " bytes; expected the 64"));
  }
  for (const int64_t gpu : {int64_t{-1}, int64_t{2}, int64_t{1} << 32, int64_t{1} << 62}) {
    SharedRegion region = good;
    region.gpu = gpu;
    add(region, absl::StrCat("device_id is ", gpu, "; expected 0 to 1"));
  }
  SharedRegion region = good;
  region.gpu = 0;
  add(region, "device_id is 0, and the memory is on GPU 1");
  region = good;
  region.key = std::string(kernels::kCudaIpcHandleBytes, '\0');
  add(region, "cannot be opened on GPU 1: invalid argument");
  region.key = Handle(1, getpid());
  add(region,
      "cannot be opened on GPU 1: invalid device context; expected the handle of memory that another");
  add(Region("r", 11), "byte_size 11 exceeds the memory behind raw_handle, which has 10 bytes");
  add(Region("r", ~uint64_t{0}), "exceeds the memory behind raw_handle");
  add(Region("r", 0), "byte_size is 0");
  add(Region("", 1), "the region's name has 0 bytes");
  for (const Case& wrong : cases) {
    const absl::Status refused = memory.Register(wrong.region);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr(wrong.reason));
    EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 0) << wrong.reason;
  }
  EXPECT_TRUE(Names(memory, RegionKind::kCuda).empty());
}

TEST_F(CudaMemoryTest, MemoryThatWasFreedIsRefused) {
  SharedMemory memory(options_);
  fs::remove(path_);
  EXPECT_THAT(std::string(memory.Register(Region("r")).message()), HasSubstr("invalid resource handle"));
}

TEST_F(CudaMemoryTest, OneHandleMayBeOpenedTwice) {
  SharedMemory memory(options_);
  ASSERT_EQ(memory.Register(Region("a")), absl::OkStatus());
  EXPECT_EQ(memory.Register(Region("a")).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_EQ(memory.Register(Region("b", 4)), absl::OkStatus());
  EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 2);
  memory.Unregister("a", "", RegionKind::kCuda);
  EXPECT_EQ(TextOf(*memory.Read({.region = "b", .size = 4})), "0123");
  EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 1);
}

TEST_F(CudaMemoryTest, RangesOutsideOfTheRegionAreRefused) {
  SharedMemory memory(options_);
  ASSERT_EQ(memory.Register(Region("r", 6)), absl::OkStatus());
  for (const SharedRange& range :
       {SharedRange{"r", 0, 7}, SharedRange{"r", 6, 1}, SharedRange{"r", ~uint64_t{0}, 2}}) {
    EXPECT_EQ(memory.Read(range).status().code(), absl::StatusCode::kInvalidArgument) << range.size;
    EXPECT_EQ(memory.Hold(range).status().code(), absl::StatusCode::kInvalidArgument) << range.size;
  }
  ASSERT_EQ(memory.Register(Region("all")), absl::OkStatus());
  EXPECT_EQ(memory.Check({.region = "all", .size = 9}).code(), absl::StatusCode::kInvalidArgument)
      << "above max_tensor_bytes";
}

// A region that is unregistered while a request uses it is closed when that request has ended.
TEST_F(CudaMemoryTest, AHeldRegionIsClosedWhenItIsNotHeldAnyMore) {
  SharedMemory memory(options_);
  ASSERT_EQ(memory.Register(Region("r")), absl::OkStatus());
  const SharedRange range = {.region = "r", .size = 2};
  {
    const auto held = memory.Hold(range);
    memory.Unregister("", "", RegionKind::kCuda);
    EXPECT_EQ(memory.Check(range).code(), absl::StatusCode::kNotFound);
    EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 1);
    EXPECT_EQ(SharedMemory::Write(*held, range, BytePieces(std::string_view("AB"))), absl::OkStatus());
  }
  EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 0);
  EXPECT_EQ(Content(), "AB23456789");
}

TEST_F(CudaMemoryTest, TheEndClosesAllRegions) {
  {
    SharedMemory memory(options_);
    ASSERT_EQ(memory.Register(Region("a")), absl::OkStatus());
    ASSERT_EQ(memory.Register(Region("b"), "token:1"), absl::OkStatus());
    EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 2);
    memory.KeepTokens({});
    EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 1) << "the regions of withdrawn tokens are closed";
  }
  EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 0);
}

TEST_F(CudaMemoryTest, BothKindsHaveOneSetOfNamesAndLimits) {
  options_.folder = path_.parent_path();
  SharedMemory memory(options_);
  const std::string file = path_.filename();
  ASSERT_EQ(memory.Register({.name = "a", .key = file, .size = 4}), absl::OkStatus());
  ASSERT_EQ(memory.Register(Region("b")), absl::OkStatus());
  EXPECT_EQ(memory.Register(Region("a")).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_EQ(memory.Register({.name = "c", .key = file, .size = 4}), absl::OkStatus());
  EXPECT_EQ(memory.Register(Region("d")).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 1) << "what is refused is closed";
  EXPECT_EQ(Names(memory, RegionKind::kSystem), (std::vector<std::string>{"a", "c"}));
  EXPECT_EQ(Names(memory, RegionKind::kCuda), (std::vector<std::string>{"b"}));
  EXPECT_EQ(memory.Status("b").status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(memory.Status("a", "", RegionKind::kCuda).status().code(), absl::StatusCode::kNotFound);
  memory.Unregister("b");
  memory.Unregister("a", "", RegionKind::kCuda);
  EXPECT_TRUE(memory.Check({.region = "a", .size = 4}).ok());
  EXPECT_TRUE(memory.Check({.region = "b", .size = 4}).ok());
  memory.Unregister("");
  EXPECT_EQ(Names(memory, RegionKind::kSystem).size(), 0U);
  EXPECT_EQ(Names(memory, RegionKind::kCuda).size(), 1U);
}

TEST_F(CudaMemoryTest, AGpuThatFailsIsAnErrorOfTheCall) {
  SharedMemory memory(options_);
  ASSERT_EQ(memory.Register(Region("r")), absl::OkStatus());
  fs::resize_file(path_, 4);
  const SharedRange range = {.region = "r", .size = 8};
  const absl::Status read = memory.Read(range).status();
  EXPECT_EQ(read.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(read.message()), HasSubstr("cannot read CUDA shared memory: an illegal memory"));
  EXPECT_THAT(std::string(read.message()), HasSubstr("the GPU has failed, and saccaded cannot use it"));
  EXPECT_EQ(SharedMemory::Write(*memory.Hold(range), range, BytePieces(std::string_view("12345"))).code(),
            absl::StatusCode::kInternal);
}

// Not the handle.
TEST_F(CudaMemoryTest, AfterAGpuHasFailedTheHandleIsNotBlamed) {
  kernels::CudaIpc failed = *saccade_cuda_ipc();
  failed.open = [](int /*gpu*/, const void* /*handle*/, kernels::OpenedCudaMemory* /*opened*/) {
    return kernels::CudaIpcOutcome{"unspecified launch failure", /*gpu_failed=*/true};
  };
  options_.gpus.ipc = &failed;
  SharedMemory memory(options_);
  EXPECT_EQ(memory.Register(Region("r")),
            absl::InternalError("raw_handle cannot be opened on GPU 1: unspecified launch failure; the GPU "
                                "has failed, and saccaded cannot use it any more: restart saccaded"));
}

TEST_F(CudaMemoryTest, WithoutAGpuOrPermissionTheReasonIsTold) {
  options_.gpus = {};
  SharedMemory without(options_);
  const absl::Status none = without.Register(Region("r"));
  EXPECT_EQ(none.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(none.message()), HasSubstr("uses no GPU"));
  EXPECT_TRUE(without.Status("", "", RegionKind::kCuda)->empty());
  without.Unregister("", "", RegionKind::kCuda);
  EXPECT_EQ(without.CanRegister(RegionKind::kSystem), absl::OkStatus());
  SharedMemory off({.allowed = false, .gpus = {.ipc = saccade_cuda_ipc(), .count = 2}});
  EXPECT_THAT(std::string(off.Register(Region("r")).message()), HasSubstr("--allow-shared-memory"));
  EXPECT_EQ(saccade_fake_cuda_ipc_blocks(), 0);
}

TEST_F(CudaMemoryTest, ManyThreadsOpenAndCloseRegions) {
  SharedMemory memory(options_);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, &memory, thread] {
      const std::string own = absl::StrCat("own", thread % 2);
      for (int i = 0; i < 50; ++i) {
        const absl::Status registered = memory.Register(Region(own));
        EXPECT_TRUE(registered.ok() || absl::IsAlreadyExists(registered) ||
                    absl::IsResourceExhausted(registered))
            << registered;
        const auto read = memory.Read({.region = own, .size = 4});
        EXPECT_TRUE(read.ok() ? TextOf(*read) == "0123" : absl::IsNotFound(read.status())) << read.status();
        memory.Unregister(own, "", RegionKind::kCuda);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace saccade::server
