#include "server/decode/workers/worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

#if defined(SACCADE_ASAN) || defined(SACCADE_TSAN)
constexpr bool kConfined = false;
#else
constexpr bool kConfined = true;
#endif

struct Ended {
  WorkerEnd end;
  std::string how;
  std::string reference;
};

// The fields of /proc/PID/stat behind the name: the state, the parent, and more.
std::vector<std::string> StatOf(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  return {std::istream_iterator<std::string>(fields), {}};
}

// Waits until the process has ended, whether its parent has waited for it or not.
void AwaitEnd(pid_t process) {
  for (;;) {
    const auto stat = StatOf(process);
    if (stat.empty() || stat[0] == "Z") return;
    sched_yield();
  }
}

class WorkerPoolTest : public ::testing::Test {
 protected:
  std::unique_ptr<WorkerPool> Make(WorkerPoolOptions options = {}) {
    if (options.program.empty()) options.program = SACCADE_DECODE_WORKER;
    options.drills = true;
    options.on_end = [this](WorkerEnd end, const std::string& how, const std::string& reference) {
      ended_.push_back({end, how, reference});
    };
    auto pool = WorkerPool::Create(std::move(options), &clock_);
    EXPECT_TRUE(pool.ok()) << pool.status();
    return *std::move(pool);
  }

  static absl::Status Perform(DecodeWorker& worker, Drill drill, const StillWanted& wanted = nullptr) {
    if (absl::Status loaded = worker.Load("x", 0); !loaded.ok()) return loaded;
    WorkerJob job;
    job.task = WorkerTask::kDrill;
    job.drill = drill;
    job.max_more_bytes = uint64_t{256} << 20;
    return worker.Run(job, wanted).status();
  }

  FakeClock clock_;
  std::vector<Ended> ended_;
};

TEST_F(WorkerPoolTest, AWorkerIsUsedAgain) {
  const auto pool = Make();
  const pid_t first = (*pool->Acquire())->pid();
  EXPECT_EQ((*pool->Acquire())->pid(), first);
  EXPECT_EQ(pool->counts().started, 1);
  EXPECT_EQ(pool->counts().idle, 1);
  EXPECT_EQ(pool->counts().busy, 0);
}

TEST_F(WorkerPoolTest, NoMoreAreKeptThanAllowed) {
  const auto pool = Make({.max_idle = 2});
  {
    std::vector<std::unique_ptr<DecodeWorker>> held;
    for (int i = 0; i < 4; ++i) held.push_back(*pool->Acquire());
    EXPECT_EQ(pool->counts().busy, 4);
  }
  EXPECT_EQ(pool->counts().busy, 0);
  EXPECT_EQ(pool->counts().idle, 2);
  EXPECT_THAT(ended_, IsEmpty());
}

TEST_F(WorkerPoolTest, TheSandboxAllowsNoFilesSocketsProcessesOrCode) {
  if (!kConfined) GTEST_SKIP() << "sanitizers need files";
  const auto pool = Make();
  const auto worker = *pool->Acquire();
  for (const Drill drill :
       {Drill::kOpenFiles, Drill::kOpenSockets, Drill::kStartProcesses, Drill::kExecutableMemory})
    EXPECT_TRUE(Perform(*worker, drill).ok()) << Perform(*worker, drill);
}

TEST_F(WorkerPoolTest, AWorkerTakesNoMoreMemoryThanItsJobMay) {
  if (!kConfined) GTEST_SKIP() << "sanitizers reserve address space";
  const auto pool = Make();
  const auto worker = *pool->Acquire();
  const absl::Status ended = Perform(*worker, Drill::kAllocate);
  EXPECT_EQ(ended.code(), absl::StatusCode::kResourceExhausted);
  // Steps of 64 MiB, of 256 MiB.
  EXPECT_THAT(std::string(ended.message()), ::testing::AnyOf("3 steps", "4 steps"));
}

TEST_F(WorkerPoolTest, ACrashCostsOneJob) {
  const auto pool = Make();
  {
    const auto worker = *pool->Acquire();
    const absl::Status crashed = Perform(*worker, Drill::kCrash);
    EXPECT_EQ(crashed.code(), absl::StatusCode::kInternal);
    ASSERT_EQ(ended_.size(), 1);
    EXPECT_EQ(ended_[0].end, WorkerEnd::kCrashed);
    if (kConfined) {
      EXPECT_EQ(ended_[0].how, "by signal 11 (SIGSEGV)");
    }
    EXPECT_THAT(std::string(crashed.message()), HasSubstr("under reference " + ended_[0].reference));
    // The caller may not go on with it.
    EXPECT_FALSE(Perform(*worker, Drill::kOpenFiles).ok());
  }
  EXPECT_EQ(pool->counts().idle, 0);
  const auto next = pool->Acquire();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(pool->counts().started, 2);
}

TEST_F(WorkerPoolTest, AJobEndsWhenItsCallIsNotWantedAnyMore) {
  const auto pool = Make();
  auto worker = *pool->Acquire();
  const pid_t process = worker->pid();
  int asked = 0;
  const absl::Status ended = Perform(*worker, Drill::kLoop, [&asked] {
    return ++asked < 3 ? absl::OkStatus() : absl::DeadlineExceededError("too late");
  });
  EXPECT_EQ(ended, absl::DeadlineExceededError("too late"));
  EXPECT_TRUE(StatOf(process).empty());
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(ended_[0].end, WorkerEnd::kNotWanted);
  EXPECT_EQ(ended_[0].reference, "");
}

TEST_F(WorkerPoolTest, ProcessorTimeIsBounded) {
  const auto pool = Make({.max_cpu = absl::Seconds(1)});
  const auto worker = *pool->Acquire();
  const absl::Status ended = Perform(*worker, Drill::kLoop);
  EXPECT_EQ(ended.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(ended.message()), HasSubstr("more than 1s of processor time"));
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(ended_[0].end, WorkerEnd::kCpuTime);
}

TEST_F(WorkerPoolTest, ProcessorTimeIsBoundedWhateverAWorkerDoesToItsLimits) {
  const auto pool = Make({.max_cpu = absl::Seconds(1)});
  const auto worker = *pool->Acquire();
  int asked = 0;
  const absl::Status ended = Perform(*worker, Drill::kLoopWithoutLimits, [&asked] {
    return ++asked < 30'000 ? absl::OkStatus() : absl::DeadlineExceededError("it went on for minutes");
  });
  EXPECT_THAT(std::string(ended.message()), HasSubstr("more than 1s of processor time"));
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(ended_[0].end, WorkerEnd::kCpuTime);
  EXPECT_EQ(ended_[0].how, "by signal 9 (SIGKILL)");
}

TEST_F(WorkerPoolTest, AWorkerThatComputesWithoutAJobIsEnded) {
  const auto pool = Make({.max_idle = 2});
  pid_t looping = 0;
  {
    const auto worker = *pool->Acquire();
    looping = worker->pid();
    ASSERT_TRUE(Perform(*worker, Drill::kLoopAfterwards).ok());
  }
  clockid_t cpu_clock{};
  ASSERT_EQ(clock_getcpuclockid(looping, &cpu_clock), 0);
  const auto used = [cpu_clock] {
    timespec time{};
    clock_gettime(cpu_clock, &time);
    return absl::DurationFromTimespec(time);
  };
  const absl::Duration enough = used() + absl::Seconds(1);
  while (used() < enough) {
    ASSERT_GT(used(), absl::ZeroDuration()) << "it ended by itself";
    sched_yield();
  }
  clock_.Advance(absl::Seconds(1));
  EXPECT_NE((*pool->Acquire())->pid(), looping);
  EXPECT_TRUE(StatOf(looping).empty());
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(ended_[0].end, WorkerEnd::kCpuTime);
  EXPECT_EQ(ended_[0].reference, "");
  // The one that took its place only waits.
  clock_.Advance(absl::Seconds(1));
  EXPECT_TRUE(pool->Acquire().ok());
  EXPECT_EQ(ended_.size(), 1);
}

TEST_F(WorkerPoolTest, AWorkerThatIsKilledWhileItWaitsCostsNothing) {
  const auto pool = Make();
  const pid_t killed = (*pool->Acquire())->pid();
  kill(killed, SIGKILL);
  AwaitEnd(killed);
  const auto worker = pool->Acquire();
  ASSERT_TRUE(worker.ok()) << worker.status();
  EXPECT_NE((*worker)->pid(), killed);
  ASSERT_EQ(ended_.size(), 1);
  EXPECT_EQ(ended_[0].end, WorkerEnd::kIdle);
  EXPECT_EQ(ended_[0].how, "by signal 9 (SIGKILL)");
}

TEST_F(WorkerPoolTest, AHelperThatIsKilledTakesItsWorkersWithItAndIsReplaced) {
  const auto pool = Make();
  auto held = *pool->Acquire();
  const pid_t worker = held->pid();
  const pid_t helper = std::stoi(StatOf(worker).at(1));
  kill(helper, SIGKILL);
  AwaitEnd(helper);
  AwaitEnd(worker);
  EXPECT_EQ(Perform(*held, Drill::kOpenFiles).code(), absl::StatusCode::kInternal);
  held.reset();
  const auto next = pool->Acquire();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_NE(std::stoi(StatOf((*next)->pid()).at(1)), helper);
}

TEST_F(WorkerPoolTest, AllProcessesEndWithThePool) {
  auto pool = Make({.max_idle = 2});
  pid_t processes[2];
  {
    const auto one = *pool->Acquire(), other = *pool->Acquire();
    processes[0] = one->pid();
    processes[1] = other->pid();
  }
  const pid_t helper = std::stoi(StatOf(processes[0]).at(1));
  pool.reset();
  for (const pid_t process : processes) EXPECT_THAT(StatOf(process), IsEmpty());
  EXPECT_THAT(StatOf(helper), IsEmpty());
}

TEST_F(WorkerPoolTest, FailedStartsAreTriedMoreAndMoreRarely) {
  const std::filesystem::path program = ::testing::TempDir() + "worker_pool_test_" + std::to_string(getpid());
  std::filesystem::create_symlink(SACCADE_DECODE_WORKER, program);
  const auto pool = Make({.program = program.string()});
  std::filesystem::remove(program);
  {
    const auto worker = *pool->Acquire();
    const pid_t helper = std::stoi(StatOf(worker->pid()).at(1));
    kill(helper, SIGKILL);
    AwaitEnd(helper);
    AwaitEnd(worker->pid());
    EXPECT_FALSE(Perform(*worker, Drill::kOpenFiles).ok());
  }
  EXPECT_EQ(pool->Acquire().status().code(), absl::StatusCode::kResourceExhausted);
  const absl::Status early = pool->Acquire().status();
  EXPECT_EQ(early.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(early.message()), HasSubstr("next attempt in 100ms"));
  clock_.Advance(absl::Milliseconds(100));
  EXPECT_EQ(pool->Acquire().status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(pool->Acquire().status().message()), HasSubstr("next attempt in 200ms"));
  std::filesystem::create_symlink(SACCADE_DECODE_WORKER, program);
  clock_.Advance(absl::Milliseconds(200));
  const auto again = pool->Acquire();
  EXPECT_TRUE(again.ok()) << again.status();
  std::filesystem::remove(program);
}

TEST_F(WorkerPoolTest, SaysWhichProgramIsMissing) {
  const auto pool = WorkerPool::Create({.program = "/no/such/program"}, &clock_);
  EXPECT_THAT(std::string(pool.status().message()), HasSubstr("/no/such/program: No such file"));
  const auto other = WorkerPool::Create({.program = "/bin/false"}, &clock_);
  EXPECT_FALSE(other.ok());
}

}  // namespace
}  // namespace saccade::server
