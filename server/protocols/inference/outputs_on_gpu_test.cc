// Which thread writes outputs to shared memory on a GPU, and that none does when the client is gone.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/core/fake_clock.h"
#include "server/inference/inference.h"
#include "server/protocols/testing/model_pipeline.h"
#include "server/shared_memory/shared_memory.h"

namespace saccade::server {
namespace {

using Voxels = std::array<float, 4>;

// Stands for the memory of a client on a GPU.
struct ClientMemory {
  Voxels voxels = {};
  std::optional<std::thread::id> written_by;
  std::optional<std::thread::id> closed_by;
};
ClientMemory client_memory;

kernels::CudaIpcOutcome OpenClientMemory(int gpu, const void* /*handle*/, kernels::OpenedCudaMemory* opened) {
  *opened = {.block = &client_memory, .gpu = gpu, .size = sizeof(Voxels)};
  return {};
}

void CloseClientMemory(void* /*block*/) { client_memory.closed_by = std::this_thread::get_id(); }

kernels::CudaIpcOutcome ReadClientMemory(void* /*block*/, uint64_t /*offset*/, size_t /*size*/,
                                         void* /*to*/) {
  return {"it is not read"};
}

kernels::CudaIpcOutcome WriteClientMemory(void* /*block*/, uint64_t offset, size_t size, const void* from) {
  client_memory.written_by = std::this_thread::get_id();
  std::memcpy(reinterpret_cast<char*>(client_memory.voxels.data()) + offset, from, size);
  return {};
}

constexpr kernels::CudaIpc kClientMemory = {.open = OpenClientMemory,
                                            .close = CloseClientMemory,
                                            .read = ReadClientMemory,
                                            .write = WriteClientMemory};

class OutputsOnGpuTest : public testing::ModelPipelineTest {
 protected:
  // The pool's one thread waits until Answer().
  void SetUp() override {
    client_memory = {};
    WriteIdentity(/*max_batch_size=*/1);
    LoadModels();
    ASSERT_EQ(shared_memory_.Register({.name = "r",
                                       .key = std::string(kernels::kCudaIpcHandleBytes, 'h'),
                                       .size = sizeof(Voxels),
                                       .gpu = 0}),
              absl::OkStatus());
    absl::Notification begun;
    ASSERT_TRUE(decode_pool_
                    ->Schedule([this, &begun] {
                      pool_thread_ = std::this_thread::get_id();
                      begun.Notify();
                      go_on_.WaitForNotification();
                    })
                    .ok());
    begun.WaitForNotification();
  }

  void TearDown() override {
    if (!go_on_.HasBeenNotified()) go_on_.Notify();
    ModelPipelineTest::TearDown();
  }

  void Infer() {
    TensorCall call;
    call.model = "identity";
    call.protocol = "oip";
    call.arrival = clock_.Now();
    call.deadline = clock_.Now() + absl::Hours(1);
    call.cancellation = cancellation_;
    const std::string_view bytes(reinterpret_cast<const char*>(kSent.data()), sizeof(kSent));
    call.inputs = {Tensor{
        .name = "image", .type = DataType::kFp32, .shape = {rows_, 1, 1, 1, 4}, .data = BytePieces(bytes)}};
    call.outputs = {{.name = "restored", .shared = SharedRange{.region = "r", .size = sizeof(Voxels)}}};
    inference_.Infer(std::move(call), [this](const absl::StatusOr<TensorAnswer>& answer) {
      answer_ = answer.status();
      answered_.Notify();
    });
  }

  // Returns when the call is computed, and waits for the pool.
  void Compute() {
    Infer();
    const absl::Time end = absl::Now() + absl::Minutes(1);
    while (decode_pool_->pending() == 0 && !answered_.HasBeenNotified()) {
      ASSERT_LT(absl::Now(), end);
      std::this_thread::yield();
    }
    EXPECT_FALSE(answered_.HasBeenNotified()) << answer_;
  }

  // The status of the call's answer.
  absl::Status Answer() {
    go_on_.Notify();
    answered_.WaitForNotification();
    return answer_;
  }

  Pipeline::Deps DepsWithClock() {
    Pipeline::Deps deps = pipeline_.deps();
    deps.clock = &clock_;
    return deps;
  }

  static constexpr Voxels kSent = {1.5F, -2, 3, 4};

  FakeClock clock_{absl::Now()};
  SharedMemory shared_memory_{{.allowed = true, .gpus = {.ipc = &kClientMemory, .count = 1}}};
  Pipeline timed_{DepsWithClock()};
  Inference inference_{&timed_, &catalog_, &shared_memory_, StatusCodes()};
  const std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
  // The batch size that the input's shape says. The input has values for one item.
  int64_t rows_ = 1;
  std::thread::id pool_thread_;
  absl::Notification go_on_;
  absl::Notification answered_;
  absl::Status answer_;
};

TEST_F(OutputsOnGpuTest, AreWrittenAndTheirMemoryIsClosedOnThePool) {
  Compute();
  shared_memory_.Unregister("r", "", RegionKind::kCuda);
  EXPECT_FALSE(client_memory.closed_by) << "the call holds it";
  EXPECT_EQ(Answer(), absl::OkStatus());
  EXPECT_EQ(client_memory.voxels, kSent);
  EXPECT_EQ(client_memory.written_by, pool_thread_);
  EXPECT_EQ(client_memory.closed_by, pool_thread_);
}

TEST_F(OutputsOnGpuTest, AreNotWrittenAfterACancellation) {
  Compute();
  cancellation_->Cancel();
  EXPECT_EQ(Answer().code(), absl::StatusCode::kCancelled);
  EXPECT_FALSE(client_memory.written_by);
}

TEST_F(OutputsOnGpuTest, AreNotWrittenAfterTheDeadline) {
  Compute();
  clock_.Advance(absl::Hours(2));
  EXPECT_EQ(Answer(), absl::DeadlineExceededError(
                          "the deadline passed before the outputs were written to shared memory"));
  EXPECT_FALSE(client_memory.written_by);
}

// So many tasks could not be replaced by pictures of other models.
TEST_F(OutputsOnGpuTest, AreWrittenByTheComputingThreadIfManyWait) {
  for (int i = 0; i < 8; ++i) ASSERT_TRUE(decode_pool_->Schedule([] {}).ok());
  Infer();
  answered_.WaitForNotification();
  EXPECT_EQ(answer_, absl::OkStatus());
  EXPECT_EQ(client_memory.voxels, kSent);
  EXPECT_NE(client_memory.written_by, pool_thread_);
}

TEST_F(OutputsOnGpuTest, AFailureDoesNotWaitForThePool) {
  rows_ = 2;
  Infer();
  answered_.WaitForNotification();
  EXPECT_EQ(answer_.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(client_memory.written_by);
}

}  // namespace
}  // namespace saccade::server
