#include "server/catalog/served_model.h"

#include <unistd.h>

#include <atomic>
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
#include "server/core/inline_passes.h"
#include "server/core/numa_nodes.h"
#include "server/core/usable_cores.h"
#include "server/engine/testing/calls.h"
#include "server/logging/log.h"
#include "server/logging/log_once.h"
#include "server/repository/checksums.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Pair;

// Answers every item with the same result. Derived classes say what the warm-up learns and what a pass does.
class AnsweringEngine : public Engine {
 public:
  const models::Description& description() const override { return description_; }
  const char* items_name() const override { return "pictures"; }
  absl::Status Check(const Request& /*request*/) const override { return absl::OkStatus(); }
  absl::Status Prepare(PredictCall& /*call*/, const Decoder& /*decoder*/, Clock* /*clock*/) const override {
    return absl::OkStatus();
  }
  std::function<absl::Status()> WarmUpPass(int64_t /*size*/) const override { return nullptr; }
  PassEnd Compute(Shares batch, Clock* clock, ModelMetrics* /*metrics*/,
                  const std::function<void()>& /*advanced*/) const override {
    Pass();
    for (auto& share : batch) {
      std::vector<models::TaskResult> results(share->size(), models::Classification{.logits = {1}});
      share->Answer(std::move(results), {.batch_size = 1, .started = clock->Now(), .ended = clock->Now()});
    }
    return {.whole = true};
  }

 private:
  virtual void Pass() const = 0;

  const models::Description description_ = {};
};

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

class ServedModelTest : public CallTest {
 protected:
  ServedModelOptions Options(std::vector<int> gpus) {
    ServedModelOptions options;
    options.settings.name = "m";
    options.settings.batching.max_batch_size = 1;
    options.settings.instances = static_cast<int>(gpus.size());
    options.settings.gpus = std::move(gpus);
    options.version.version = 3;
    return options;
  }

  DeviceGroup devices_{{.cores = 1}, &clock_};
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

// Fails every pass, as an engine on a broken GPU does.
class BrokenEngine final : public AnsweringEngine {
 public:
  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }
  PassEnd Compute(Shares batch, Clock* /*clock*/, ModelMetrics* /*metrics*/,
                  const std::function<void()>& /*advanced*/) const override {
    PassEnd end;
    for (auto& share : batch) end.failed.push_back({std::move(share), absl::InternalError("broken")});
    return end;
  }

 private:
  void Pass() const override {}
};

// Its first pass finds the device lost.
class LosingEngine final : public AnsweringEngine {
 public:
  explicit LosingEngine(std::atomic<int>* passes) : passes_(passes) {}
  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }
  PassEnd Compute(Shares batch, Clock* /*clock*/, ModelMetrics* /*metrics*/,
                  const std::function<void()>& /*advanced*/) const override {
    ++*passes_;
    PassEnd end = {.device_lost = true};
    for (auto& share : batch) end.failed.push_back({std::move(share), absl::UnavailableError("lost")});
    return end;
  }

 private:
  void Pass() const override {}

  std::atomic<int>* const passes_;
};

class WorkingEngine final : public AnsweringEngine {
 public:
  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }

 private:
  void Pass() const override {}
};

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

// A pass takes a millisecond with any number of threads.
class UnsharedEngine final : public AnsweringEngine {
 public:
  explicit UnsharedEngine(FakeClock* clock) : clock_(clock) {}

  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }
  std::function<absl::Status()> WarmUpPass(int64_t /*size*/) const override {
    return [clock = clock_] {
      clock->Advance(absl::Milliseconds(1));
      return absl::OkStatus();
    };
  }

 private:
  void Pass() const override {}

  FakeClock* const clock_;
};

// The instances and the threads of each that a model with such passes gets on so many cores.
class FillingTest : public ServedModelTest {
 protected:
  ModelTiming Loaded(int cores, const std::function<void(ServedModelOptions*)>& set = nullptr) {
    ServedModelOptions options = Options({});
    options.settings.instances = 1;
    options.threads_per_instance = cores;
    options.fewer_threads = true;
    if (set != nullptr) set(&options);
    int last = 0;
    options.load_engine = [&](const ModelSettings&, const EngineOptions& wanted) {
      last = wanted.instances;
      return std::make_unique<UnsharedEngine>(&clock_);
    };
    DeviceGroup group({.cores = cores}, &clock_);
    ServedModel model(std::move(options), &group, &clock_, &metrics_);
    EXPECT_TRUE(model.Load().ok());
    EXPECT_EQ(model.Timing()->instances, last) << "the engine was loaded for them";
    return *model.Timing();
  }
};

TEST_F(FillingTest, InstancesTakeTheCoresThatPassesLeave) {
  const ModelTiming timing = Loaded(4);
  EXPECT_EQ(timing.threads, 1);
  EXPECT_EQ(timing.instances, 4);
  EXPECT_EQ(Loaded(64).instances, kMaxFillingInstances);
}

// A pass takes eight milliseconds, divided among the threads unless other processes have the cores.
class DividedEngine final : public AnsweringEngine {
 public:
  DividedEngine(FakeClock* clock, const bool* busy) : clock_(clock), busy_(busy) {}

  absl::Status WarmUp(const WarmUpOptions& /*options*/) const override { return absl::OkStatus(); }
  std::function<absl::Status()> WarmUpPass(int64_t /*size*/) const override {
    return [this] {
      clock_->Advance(absl::Milliseconds(8) / (*busy_ ? 1 : models::UsedThreads()));
      return absl::OkStatus();
    };
  }

 private:
  void Pass() const override {}

  FakeClock* const clock_;
  const bool* const busy_;
};

TEST_F(ServedModelTest, AnotherLoadBesideTheDaemonGivesAnotherNumberOfThreads) {
  bool busy = false;
  ModelKinds kinds;
  std::set<LoadStep::Kind> steps;
  ServedModelOptions options = Options({});
  options.settings.instances = 1;
  options.threads_per_instance = 4;
  options.fewer_threads = true;
  options.deps.kinds = &kinds;
  options.deps.load_step = [&](const LoadStep& step) { steps.insert(step.kind); };
  options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
    return std::make_unique<DividedEngine>(&clock_, &busy);
  };
  ASSERT_TRUE(IsTried(options));
  DeviceGroup group({.cores = 4}, &clock_);
  ServedModel alone(options, &group, &clock_, &metrics_);
  ASSERT_TRUE(alone.Load().ok());
  EXPECT_EQ(alone.Timing()->threads, 4);
  EXPECT_EQ(alone.Timing()->instances, 1);

  const auto same = alone.TryAgain(options);
  ASSERT_TRUE(same.ok()) << same.status();
  EXPECT_EQ(same->threads, 4);
  EXPECT_EQ(same->instances, 1);

  busy = true;
  const auto best = alone.TryAgain(options);
  ASSERT_TRUE(best.ok()) << best.status();
  EXPECT_EQ(best->threads, 1);
  EXPECT_EQ(best->instances, 4);
  EXPECT_EQ(alone.Timing()->threads, 4) << "the model that serves is as it was";

  // The successor makes no trial of its own, and the next start begins with what was found.
  steps.clear();
  options.split = *best;
  options.takes_over = true;
  ServedModel successor(options, &group, &clock_, &metrics_);
  ASSERT_TRUE(successor.Load().ok());
  EXPECT_EQ(successor.Timing()->threads, 1);
  EXPECT_EQ(successor.Timing()->instances, 4);
  EXPECT_EQ(steps.count(LoadStep::Kind::kTrial), 0u);
  const auto known = kinds.Find(KindOf(options));
  ASSERT_TRUE(known);
  EXPECT_EQ(known->threads, 1);
  EXPECT_EQ(known->instances, 4);
  // Both serve for a moment, and the first leaves the metrics to the second.
  alone.HandOver();
  alone.Close();
  EXPECT_TRUE(successor.CheckReady().ok());
  successor.Close();
}

// Models whose kind depends on their files.
class KindOfFilesOfServedModelTest : public ServedModelTest {
 protected:
  ServedModelOptions Graph(const std::string& folder, const std::string& contents) {
    repository_.Write(folder + "/1/model.onnx", contents);
    ServedModelOptions options = Options({});
    options.settings.name = folder;
    options.settings.backend = Backend::kOnnxruntime;
    options.settings.instances = 1;
    options.version.weights_path = (repository_.path() / folder / "1" / "model.onnx").string();
    options.threads_per_instance = 4;
    options.fewer_threads = true;
    options.deps.kinds = &kinds_;
    options.deps.load_step = [this](const LoadStep& step) { steps_.insert(step.kind); };
    options.load_engine = [this](const ModelSettings&, const EngineOptions&) {
      return std::make_unique<DividedEngine>(&clock_, &busy_);
    };
    return options;
  }
  // A network whose precision its samples choose. Nothing of it can be measured, because it is none of ours.
  ServedModelOptions WithSamples() {
    ServedModelOptions options = Graph("chosen", "weights");
    options.settings.backend = Backend::kSaccade;
    options.settings.options["precision"] = "auto";
    options.settings.samples = {options.version.weights_path};
    options.native = {.bfloat16 = true};
    return options;
  }
  absl::Status Load(ServedModelOptions options) {
    steps_.clear();
    DeviceGroup group({.cores = 4}, &clock_);
    ServedModel model(std::move(options), &group, &clock_, &metrics_);
    absl::Status loaded = model.Load();
    if (loaded.ok() && model.precision()) precision_ = *model.precision();
    return loaded;
  }
  bool Tried() const { return steps_.count(LoadStep::Kind::kTrial) > 0; }

  const TestRepository repository_;
  int reads_ = 0;
  ModelKinds kinds_{{},
                    nullptr,
                    [this](const std::string& path) {
                      ++reads_;
                      return FileSum(path);
                    },
                    // The sum of a file that was just written would not be kept.
                    [] { return absl::Now() + absl::Hours(1); }};
  std::set<LoadStep::Kind> steps_;
  PrecisionChoice precision_;
  bool busy_ = false;
};

TEST_F(KindOfFilesOfServedModelTest, AGraphIsMeasuredOnce) {
  const ServedModelOptions first = Graph("first", "graph");
  EXPECT_FALSE(FindKind(first));
  ASSERT_TRUE(Load(first).ok());
  EXPECT_TRUE(Tried());
  const auto known = FindKind(first);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->threads, 4);
  ASSERT_TRUE(Load(first).ok());
  EXPECT_FALSE(Tried());
  ASSERT_TRUE(Load(Graph("copy", "graph")).ok());
  EXPECT_FALSE(Tried());
  const ServedModelOptions other = Graph("other", "GRAPH");
  EXPECT_FALSE(FindKind(other)) << "only its size is the same";
  ASSERT_TRUE(Load(other).ok());
  EXPECT_TRUE(Tried());
}

// Its checksum is part of the kind, which is made before and after the load, and of the identity. An engine
// may ask for it, too.
TEST_F(KindOfFilesOfServedModelTest, AFileIsReadOnceForAllThatNeedItsChecksum) {
  ServedModelOptions options = Graph("first", "graph");
  options.load_engine = [&](const ModelSettings&, const EngineOptions& wanted) {
    EXPECT_TRUE(wanted.file_sum(wanted.version.weights_path).ok());
    return std::make_unique<DividedEngine>(&clock_, &busy_);
  };
  ASSERT_TRUE(Load(options).ok());
  EXPECT_EQ(reads_, 1);
  ASSERT_TRUE(Load(options).ok());
  EXPECT_EQ(reads_, 1);
  repository_.Write("first/1/model.onnx", "a longer graph");
  ASSERT_TRUE(Load(options).ok());
  EXPECT_EQ(reads_, 2);
}

TEST_F(KindOfFilesOfServedModelTest, FilesThatChangeWhileTheyAreMeasuredAreNotRemembered) {
  ServedModelOptions options = Graph("first", "graph");
  options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
    repository_.Write("first/1/model.onnx", "a longer graph");
    return std::make_unique<DividedEngine>(&clock_, &busy_);
  };
  EXPECT_FALSE(Load(options).ok()) << "these are not the files that were loaded";
  EXPECT_FALSE(FindKind(options));
  EXPECT_FALSE(FindKind(Graph("second", "graph")));
}

TEST_F(KindOfFilesOfServedModelTest, AChoiceBySamplesIsRemembered) {
  const ServedModelOptions options = WithSamples();
  EXPECT_FALSE(Load(options).ok()) << "it is measured";
  EXPECT_EQ(steps_.count(LoadStep::Kind::kPrecision), 1u);
  MeasuredKind measured;
  measured.threads = 2;
  measured.precision = "bf16";
  measured.precision_reason = "bf16 changes nothing";
  kinds_.Keep(KindOf(options), measured);
  ASSERT_TRUE(Load(options).ok());
  EXPECT_EQ(steps_.count(LoadStep::Kind::kPrecision), 0u);
  EXPECT_FALSE(Tried());
  EXPECT_EQ(precision_.precision, models::Precision::kBFloat16);
  EXPECT_EQ(precision_.reason, "bf16 changes nothing");
  ServedModelOptions stricter = options;
  stricter.settings.max_precision_loss = 0;
  EXPECT_FALSE(FindKind(stricter));
  // The same precision with a trial's number of threads.
  ServedModelOptions successor = options;
  successor.split = InstanceSplit{.instances = 1, .threads = 3};
  successor.precision = precision_;
  ASSERT_TRUE(Load(successor).ok());
  const auto known = FindKind(options);
  ASSERT_TRUE(known);
  EXPECT_EQ(known->threads, 3);
  EXPECT_EQ(known->precision, "bf16");
  repository_.Write("chosen/1/model.onnx", "other weights");
  EXPECT_FALSE(FindKind(options));
}

TEST_F(KindOfFilesOfServedModelTest, APrecisionThatSamplesCannotHaveChosenIsMeasuredAgain) {
  const ServedModelOptions options = WithSamples();
  for (const char* precision : {"", "int8", "fp16", "none"}) {
    MeasuredKind measured;
    measured.threads = 2;
    measured.precision = precision;
    kinds_.Keep(KindOf(options), measured);
    EXPECT_FALSE(FindKind(options)) << precision;
  }
}

// The kind of such a network depends on no more than that of one without samples.
TEST_F(KindOfFilesOfServedModelTest, SamplesThatChooseNothingAreNoPartOfTheKind) {
  ServedModelOptions options = WithSamples();
  options.settings.options["precision"] = "fp32";
  const std::string kind = KindOf(options);
  EXPECT_NE(kind, "");
  options.settings.samples.clear();
  EXPECT_EQ(KindOf(options), kind);
  options = WithSamples();
  options.native = {};
  const std::string without_instructions = KindOf(options);
  options.settings.samples.clear();
  EXPECT_EQ(KindOf(options), without_instructions);
}

TEST_F(ServedModelTest, APrecisionThatWasChosenEarlierIsKept) {
  ServedModelOptions options = Options({});
  options.settings.backend = Backend::kSaccade;
  options.settings.instances = 1;
  options.precision = PrecisionChoice{.precision = models::Precision::kBFloat16, .reason = "as before"};
  std::optional<models::Precision> loaded_in;
  bool busy = false;
  options.load_engine = [&](const ModelSettings&, const EngineOptions& wanted) {
    loaded_in = wanted.precision;
    return std::make_unique<DividedEngine>(&clock_, &busy);
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  EXPECT_EQ(loaded_in, models::Precision::kBFloat16);
  EXPECT_EQ(model.Snapshot().precision_reason, "as before");
  ASSERT_TRUE(model.precision());
  EXPECT_EQ(model.precision()->precision, models::Precision::kBFloat16);
}

TEST_F(ServedModelTest, ConfiguredThreadsAreNotTried) {
  ServedModelOptions options = Options({});
  EXPECT_FALSE(IsTried(options));
  options.settings.optimize = Optimize::kLatency;
  EXPECT_TRUE(IsTried(options));
  options = Options({0});
  options.fewer_threads = true;
  EXPECT_FALSE(IsTried(options));
}

TEST_F(FillingTest, WhatWasConfiguredIsKept) {
  const ModelTiming configured = Loaded(4, [](auto* options) { options->settings.has_instances = true; });
  EXPECT_EQ(configured.threads, 1);
  EXPECT_EQ(configured.instances, 1);
  const auto pin = [](auto* options) {
    options->settings.pin = true;
    options->pinned_to = PinnedCores(1).Take(1);
  };
  EXPECT_EQ(Loaded(4, pin).instances, 1);
  EXPECT_EQ(Loaded(4, [](auto* options) { options->fewer_threads = false; }).instances, 1);
}

TEST_F(ServedModelTest, OneBrokenGpuCostsNoAnswerAndIsSetAside) {
  ServedModelOptions options = Options({0, 1});
  options.load_engine = [](const ModelSettings&,
                           const EngineOptions& wanted) -> absl::StatusOr<std::unique_ptr<Engine>> {
    if (wanted.gpu == 0) return std::make_unique<BrokenEngine>();
    return std::make_unique<WorkingEngine>();
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  std::vector<std::shared_ptr<Outcome>> outcomes;
  for (int i = 0; i < 60; ++i) {
    const auto outcome = outcomes.emplace_back(std::make_shared<Outcome>());
    absl::Notification answered;
    outcome->when_answered = [&] { answered.Notify(); };
    auto share = std::move(ShareOut(Call({32}, outcome))[0]);
    ASSERT_TRUE(model.Submit(share).ok());
    answered.WaitForNotification();
  }
  model.RefreshGauges();
  const std::string exposition = metrics_.Exposition();
  model.Close();
  for (const auto& outcome : outcomes) {
    ASSERT_EQ(outcome->answers, 1);
    EXPECT_TRUE(outcome->status().ok()) << outcome->status();
  }
  EXPECT_THAT(exposition, HasSubstr("saccade_model_instances_set_aside{model=\"m\",version=\"3\"} 1"));
  // The third failure is noticed when its retry has ended. The next request may have been handed out by then.
  EXPECT_THAT(exposition,
              ::testing::ContainsRegex("saccade_batches_retried_total.model=\"m\",version=\"3\". [34]"));
}

TEST_F(ServedModelTest, ALostGpuIsNeverAskedAgainAndItsRequestsAreComputedElsewhere) {
  std::atomic<int> passes = 0;
  ServedModelOptions options = Options({0, 1});
  options.load_engine = [&](const ModelSettings&,
                            const EngineOptions& wanted) -> absl::StatusOr<std::unique_ptr<Engine>> {
    if (wanted.gpu == 0) return std::make_unique<LosingEngine>(&passes);
    return std::make_unique<WorkingEngine>();
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  EXPECT_FALSE(model.device_lost());
  model.RefreshGauges();
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("saccade_model_instances_lost{model=\"m\",version=\"3\"} 0"));
  for (int i = 0; i < 20; ++i) {
    const auto outcome = std::make_shared<Outcome>();
    absl::Notification answered;
    outcome->when_answered = [&] { answered.Notify(); };
    auto share = std::move(ShareOut(Call({32}, outcome))[0]);
    ASSERT_TRUE(model.Submit(share).ok());
    answered.WaitForNotification();
    EXPECT_TRUE(outcome->status().ok()) << outcome->status();
  }
  EXPECT_TRUE(model.device_lost());
  model.RefreshGauges();
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("saccade_model_instances_lost{model=\"m\",version=\"3\"} 1"));
  model.Close();
  EXPECT_EQ(passes, 1);
}

TEST_F(ServedModelTest, RequestsAreRejectedOnceAllGpusAreLost) {
  std::atomic<int> passes = 0;
  ServedModelOptions options = Options({0});
  options.load_engine = [&](const ModelSettings&, const EngineOptions&) {
    return std::make_unique<LosingEngine>(&passes);
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  for (int i = 0; i < 5; ++i) {
    const auto outcome = std::make_shared<Outcome>();
    absl::Notification answered;
    outcome->when_answered = [&] { answered.Notify(); };
    auto share = std::move(ShareOut(Call({32}, outcome))[0]);
    ASSERT_TRUE(model.Submit(share).ok());
    answered.WaitForNotification();
    EXPECT_EQ(outcome->status().code(), absl::StatusCode::kUnavailable) << outcome->status();
  }
  model.Close();
  EXPECT_EQ(passes, 1) << "a pass on a lost GPU may hang";
}

TEST_F(ServedModelTest, WhatFailsOnEveryInstanceIsAnsweredWithTheFailure) {
  ServedModelOptions options = Options({0, 1});
  options.load_engine = [](const ModelSettings&,
                           const EngineOptions&) -> absl::StatusOr<std::unique_ptr<Engine>> {
    return std::make_unique<BrokenEngine>();
  };
  ServedModel model(std::move(options), &devices_, &clock_, &metrics_);
  ASSERT_TRUE(model.Load().ok());
  absl::Notification answered;
  outcome_->when_answered = [&] { answered.Notify(); };
  auto share = std::move(ShareOut(Call({32}, outcome_))[0]);
  ASSERT_TRUE(model.Submit(share).ok());
  answered.WaitForNotification();
  model.Close();
  EXPECT_EQ(outcome_->status(), absl::InternalError("broken"));
  EXPECT_THAT(metrics_.Exposition(), HasSubstr("reason=\"BACKEND\",version=\"3\"} 1"));
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
