#include "server/catalog/served_model.h"

#include <unistd.h>

#include <barrier>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/use_threads.h"
#include "server/catalog/testing/served_model_fixture.h"
#include "server/core/inline_passes.h"
#include "server/core/numa_nodes.h"
#include "server/core/usable_cores.h"
#include "server/logging/log.h"
#include "server/logging/log_once.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;

// Answers once every engine of its test is computing.
class MeetingEngine final : public AnsweringEngine {
 public:
  explicit MeetingEngine(std::barrier<>* all) : all_(all) {}

  absl::Status WarmUp(const WarmUpOptions& options) const override {
    for (int i = 0; i < 100; ++i) options.learn(0, 1, absl::Seconds(1));
    return absl::OkStatus();
  }

 private:
  void Pass() const override { all_->arrive_and_wait(); }

  std::barrier<>* const all_;
};

constexpr int64_t kSide = 32;

// Learns that its passes are short, and notes with how many threads they are computed.
class ShortEngine final : public AnsweringEngine {
 public:
  explicit ShortEngine(std::vector<int>* threads) : threads_(threads) {}

  absl::Status WarmUp(const WarmUpOptions& options) const override {
    options.learn(BucketId({.sent = {1, 1}, .scaled = {1, 1}, .bucket = {kSide, kSide}}), 1,
                  absl::Microseconds(5));
    return absl::OkStatus();
  }

 private:
  void Pass() const override { threads_->push_back(models::UsedThreads()); }

  std::vector<int>* const threads_;
};

TEST_F(ServedModelTest, EachGpuHasAnEngineAndAllOfThemCompute) {
  std::barrier both(2);
  std::map<int, int> instances;
  ServedModelOptions options = Options({4, 4, 7});
  options.load_engine = [&](const ModelSettings&, const EngineOptions& wanted) {
    instances[wanted.gpu.value()] = wanted.instances;
    return std::make_unique<MeetingEngine>(&both);
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  EXPECT_THAT(instances, ElementsAre(Pair(4, 2), Pair(7, 1)));
  const auto second = std::make_shared<Outcome>();
  for (const auto& outcome : {outcome_, second}) {
    auto shares = ShareOut(Call({32}, outcome));
    ASSERT_TRUE(model.Submit(shares[0]).ok());
  }
  // A single engine would wait for the other one for ever. Two instances on the first GPU cannot run at once,
  // because that device has a single core.
  model.Close();
  for (const auto& outcome : {outcome_, second}) {
    ASSERT_EQ(outcome->answers, 1);
    EXPECT_TRUE(outcome->status().ok()) << outcome->status();
  }
}

// A thread of the network brings the request and computes it.
TEST_F(ServedModelTest, AShortPassUsesTheThreadsOfItsModel) {
  std::vector<int> threads;
  ServedModelOptions options = Options({});
  options.settings.instances = 1;
  options.threads_per_instance = 3;
  options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
    return std::make_unique<ShortEngine>(&threads);
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  // What another thread asks for last is what a new thread begins with.
  std::thread([] { models::UseThreads(2); }).join();
  std::thread([&] {
    auto shares = ShareOut(Call({kSide}, outcome_));
    ASSERT_TRUE(model.Submit(shares[0]).ok());
    ASSERT_EQ(outcome_->answers, 1) << "it was computed here";
  }).join();
  EXPECT_THAT(threads, ElementsAre(3));
  model.Close();
}

// What one model lacks on this machine, the others lack too.
TEST_F(ServedModelTest, MissingInstructionsAreLoggedOnceForAllModels) {
  LogOnce log_once;
  std::vector<int> threads;
  ::testing::internal::CaptureStderr();
  InitLogging(LogFormat::kText, LogLevel::kInfo);
  for (const char* name : {"first", "second"}) {
    ServedModelOptions options = Options({});
    options.settings.name = name;
    options.settings.instances = 1;
    options.settings.options["precision"] = "auto";
    options.native = {};
    options.deps.log_once = &log_once;
    options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
      return std::make_unique<ShortEngine>(&threads);
    };
    ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
    ASSERT_TRUE(model.Load().ok());
    EXPECT_EQ(model.Snapshot().precision, "fp32");
  }
  EXPECT_TRUE(FlushLog(absl::Seconds(30)));
  const std::string log = ::testing::internal::GetCapturedStderr();
  const std::string warning = "precision auto stays at fp32: this processor has no instructions for bf16";
  const size_t found = log.find(warning);
  ASSERT_NE(found, std::string::npos) << log;
  EXPECT_THAT(log.substr(found), HasSubstr("first_model=first"));
  EXPECT_EQ(log.find(warning, found + 1), std::string::npos) << log;
  // Each model still says what was chosen for it.
  EXPECT_THAT(log, HasSubstr("precision chosen model=second"));
}

// Learns that its passes are short, and notes which threads compute them. The first pass waits until another
// request is queued.
class QueueingEngine final : public AnsweringEngine {
 public:
  QueueingEngine(absl::Notification* began, absl::Notification* queued, std::vector<std::thread::id>* on)
      : began_(began), queued_(queued), on_(on) {}

  absl::Status WarmUp(const WarmUpOptions& options) const override {
    options.learn(BucketId({.sent = {1, 1}, .scaled = {1, 1}, .bucket = {kSide, kSide}}), 1,
                  absl::Microseconds(5));
    return absl::OkStatus();
  }

 private:
  void Pass() const override {
    on_->push_back(std::this_thread::get_id());
    if (on_->size() > 1) return;
    began_->Notify();
    queued_->WaitForNotification();
  }

  absl::Notification* const began_;
  absl::Notification* const queued_;
  std::vector<std::thread::id>* const on_;
};

class InlinePassesTest : public ServedModelTest {
 protected:
  // Submits a request on this thread, within a limit, and during its pass another one on another thread.
  // Returns for both whether this thread computed them.
  std::vector<bool> ComputedHere(InlinePasses passes) {
    absl::Notification began;
    absl::Notification queued;
    std::vector<std::thread::id> on;
    ServedModelOptions options = Options({});
    options.settings.instances = 1;
    options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
      return std::make_unique<QueueingEngine>(&began, &queued, &on);
    };
    ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
    EXPECT_TRUE(model.Load().ok());
    std::thread other([&] {
      began.WaitForNotification();
      auto share = std::move(ShareOut(Call({kSide}, std::make_shared<Outcome>()))[0]);
      EXPECT_TRUE(model.Submit(share).ok());
      queued.Notify();
    });
    auto share = std::move(ShareOut(Call({kSide}, outcome_))[0]);
    {
      const LimitInlinePasses limit(passes);
      EXPECT_TRUE(model.Submit(share).ok());
    }
    other.join();
    // Computes what is queued.
    model.Close();
    std::vector<bool> here;
    here.reserve(on.size());
    for (const std::thread::id thread : on) here.push_back(thread == std::this_thread::get_id());
    return here;
  }
};

TEST_F(InlinePassesTest, AFreeThreadGoesOnWithOtherRequests) {
  EXPECT_THAT(ComputedHere(InlinePasses::kAny), ElementsAre(true, true));
}

TEST_F(InlinePassesTest, AThreadThatIsAwaitedComputesItsOwnRequestOnly) {
  EXPECT_THAT(ComputedHere(InlinePasses::kOwn), ElementsAre(true, false));
}

TEST_F(InlinePassesTest, AThreadWithMoreToStartComputesNothing) {
  EXPECT_THAT(ComputedHere(InlinePasses::kNone), ElementsAre(false, false));
}

// What an answer starts may be computed here, but nothing after it: the instance waits.
TEST_F(ServedModelTest, AnInstanceIsNotLentToOtherRequests) {
  std::vector<int> threads;
  ServedModelOptions options = Options({});
  options.settings.instances = 1;
  options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
    return std::make_unique<ShortEngine>(&threads);
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  InlinePasses passes = InlinePasses::kAny;
  outcome_->when_answered = [&] { passes = LimitInlinePasses::Current(); };
  auto share = std::move(ShareOut(Call({kSide}, outcome_))[0]);
  ASSERT_TRUE(model.Submit(share).ok());
  EXPECT_EQ(passes, InlinePasses::kOwn);
  model.Close();
}

// Notes the processors on which its passes run, and as many of them as there are instances at the same time.
class PlacedEngine final : public AnsweringEngine {
 public:
  PlacedEngine(std::barrier<>* all, std::mutex* mutex, std::set<NumaNode>* on)
      : all_(all), mutex_(mutex), on_(on) {}
  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }

 private:
  void Pass() const override {
    all_->arrive_and_wait();
    const std::lock_guard lock(*mutex_);
    on_->insert(AllowedProcessors());
  }

  std::barrier<>* const all_;
  std::mutex* const mutex_;
  std::set<NumaNode>* const on_;
};

class NodesTest : public ServedModelTest {
 protected:
  void SetUp() override {
    if (all_.size() < 2) GTEST_SKIP() << "there is one processor";
  }

  // Has each instance of a model compute a pass, and returns where they ran.
  std::set<NumaNode> Place(const std::vector<NumaNode>& nodes, int first_node, int instances,
                           int threads = 1) {
    ServedModelOptions options = Options({});
    options.settings.instances = instances;
    options.threads_per_instance = threads;
    options.nodes = WithCores(nodes, "nowhere");
    options.first_node = first_node;
    std::barrier together(instances);
    std::mutex mutex;
    std::set<NumaNode> on;
    options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
      loaded_on_ = AllowedProcessors();
      return std::make_unique<PlacedEngine>(&together, &mutex, &on);
    };
    ServedModel model(std::move(options), &both_, &clock_, &metrics_);
    EXPECT_TRUE(model.Load().ok());
    for (int i = 0; i < instances; ++i) {
      auto share = std::move(ShareOut(Call({kSide}, std::make_shared<Outcome>()))[0]);
      EXPECT_TRUE(model.Submit(share).ok());
    }
    // Computes what is queued.
    model.Close();
    return on;
  }

  DeviceGroup both_{{.cores = 2}, &clock_};
  const NumaNode all_ = AllowedProcessors();
  NumaNode loaded_on_;
};

TEST_F(NodesTest, WhatFitsOnANodeStaysThere) {
  const NumaNode first = {all_[0]};
  const NumaNode second = {all_[1]};
  EXPECT_THAT(Place({first, second}, 0, 1), ElementsAre(first));
  EXPECT_EQ(loaded_on_, first) << "the weights lie there too";
  EXPECT_THAT(Place({first, second}, 1, 1), ElementsAre(second));
  EXPECT_EQ(loaded_on_, second);
  EXPECT_EQ(AllowedProcessors(), all_) << "the thread that loads is free again";
}

TEST_F(NodesTest, InstancesThatNeedMoreThanANodeTakeTurns) {
  const NumaNode first = {all_[0]};
  const NumaNode second = {all_[1]};
  EXPECT_EQ(Place({first, second}, 1, 2), (std::set<NumaNode>{first, second}));
}

TEST_F(NodesTest, APassThatIsLargerThanANodeRunsAnywhere) {
  EXPECT_THAT(Place({{all_[0]}, {all_[1]}}, 0, 1, 2), ElementsAre(all_));
  EXPECT_EQ(loaded_on_, all_);
}

TEST_F(NodesTest, OneNodeIsNoChoice) { EXPECT_THAT(Place({{all_[0]}}, 0, 1), ElementsAre(all_)); }

// Has two buckets to warm.
class WarmingEngine final : public AnsweringEngine {
 public:
  absl::Status WarmUp(const WarmUpOptions& options) const override {
    for (int64_t done = 0; done <= 2; ++done) options.advanced(done, 2);
    return absl::OkStatus();
  }

 private:
  void Pass() const override {}
};

TEST_F(ServedModelTest, ALoadTellsItsSteps) {
  using Kind = LoadStep::Kind;
  ServedModelOptions options = Options({});
  options.settings.instances = 1;
  options.fewer_threads = true;
  options.load_engine = [](const ModelSettings&, const EngineOptions&) {
    return std::make_unique<WarmingEngine>();
  };
  std::vector<Kind> kinds;
  std::vector<int64_t> warm;
  options.deps.load_step = [&](const LoadStep& step) {
    EXPECT_EQ(step.since, clock_.Now());
    if (kinds.empty() || kinds.back() != step.kind) kinds.push_back(step.kind);
    if (step.of == 2) warm.push_back(step.done);
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  EXPECT_THAT(kinds, ElementsAre(Kind::kChecking, Kind::kReading, Kind::kTrial, Kind::kWarmUp));
  EXPECT_THAT(warm, ElementsAre(0, 1, 2));
}

// Else signed answers would name weights that did not compute them.
TEST_F(ServedModelTest, WeightsThatAreReplacedMeanwhileAreNotServed) {
  const std::string path = ::testing::TempDir() + "/replaced." + std::to_string(getpid());
  const auto write = [](const std::string& file, const std::string& bytes) { std::ofstream(file) << bytes; };
  for (const bool replaced : {false, true}) {
    write(path, "one");
    ServedModelOptions options = Options({});
    options.settings.instances = 1;
    options.version.weights_path = path;
    options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
      write(path + ".new", "two");
      if (replaced) std::filesystem::rename(path + ".new", path);
      return std::make_unique<WarmingEngine>();
    };
    ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
    const absl::Status loaded = model.Load();
    EXPECT_EQ(loaded.ok(), !replaced) << loaded;
    if (replaced) {
      EXPECT_THAT(std::string(loaded.message()), HasSubstr("were replaced while they were loaded"));
    }
  }
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".new");
}

TEST_F(ServedModelTest, AGpuThatIsMissingIsTheModelsError) {
  std::barrier none(1);
  ServedModelOptions options = Options({0, 1});
  options.load_engine = [&](const ModelSettings&,
                            const EngineOptions& wanted) -> absl::StatusOr<std::unique_ptr<Engine>> {
    if (wanted.gpu == 1)
      return absl::InvalidArgumentError("the model needs GPU 1, but there are 1 GPUs, numbered from 0");
    return std::make_unique<MeetingEngine>(&none);
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  EXPECT_THAT(std::string(model.Load().message()), HasSubstr("GPU 1"));
  EXPECT_EQ(model.CheckReady().code(), absl::StatusCode::kUnavailable);
}

// An ensemble has no instances, but it is ready while it is served.
TEST_F(ServedModelTest, TheReadyGaugeOfAnEnsembleFollowsItsState) {
  const auto gauge = [this] {
    const std::string metrics = metrics_.Exposition();
    const size_t at = metrics.find("saccade_model_ready{");
    return metrics.substr(at, metrics.find('\n', at) - at);
  };
  ServedModelOptions options = Options({});
  options.settings.backend = Backend::kEnsemble;
  options.deps.check_ensemble = [](const Ensemble&) { return absl::OkStatus(); };
  ServedModel model(options, &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  EXPECT_THAT(gauge(), EndsWith("} 1"));
  model.Close();
  EXPECT_THAT(gauge(), EndsWith("} 0"));
  EXPECT_EQ(model.CheckReady().code(), absl::StatusCode::kUnavailable);
  model.Close();
  EXPECT_THAT(gauge(), EndsWith("} 0"));
  // The gauge belongs to the version's next model once that has taken over.
  ServedModel next(options, &devices_, &clock_, &metrics_);
  ASSERT_TRUE(next.Load().ok());
  ServedModel last(options, &devices_, &clock_, &metrics_);
  ASSERT_TRUE(last.Load().ok());
  next.HandOver();
  next.Close();
  EXPECT_THAT(gauge(), EndsWith("} 1"));
}

// There is neither a GPU nor a file.
TEST_F(ServedModelTest, OfAModelForGpusTheConfigurationAloneIsChecked) {
  ModelSettings settings = Options({0, kEveryGpu}).settings;
  settings.architecture = "identity";
  EXPECT_TRUE(ServedModel::Check(settings, {}, {}).ok()) << ServedModel::Check(settings, {}, {});
  settings.options = {{"hang_at", "5"}};
  EXPECT_THAT(std::string(ServedModel::Check(settings, {}, {}).message()), HasSubstr("--allow-drills"));
  EXPECT_TRUE(ServedModel::Check(settings, {}, {.drills = true}).ok());
  settings.options.clear();
  settings.architecture = "unheard-of";
  EXPECT_THAT(std::string(ServedModel::Check(settings, {}, {}).message()), HasSubstr("unheard-of"));
  settings.backend = Backend::kPytorch;
  settings.architecture.clear();
  settings.inputs = {{.name = "x", .dims = {4}}};
  settings.outputs = {{.name = "y", .dims = {4}}};
  EXPECT_THAT(std::string(ServedModel::Check(settings, {}, {}).message()),
              HasSubstr("--allow-executable-models"));
  EXPECT_TRUE(ServedModel::Check(settings, {}, {.executable = true}).ok())
      << ServedModel::Check(settings, {}, {.executable = true});
}

}  // namespace
}  // namespace saccade::server
