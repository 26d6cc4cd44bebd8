// What a load measures: instances, threads and precision, and what it remembers of them for the next one.
#include "server/catalog/served_model.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/device/use_threads.h"
#include "server/catalog/testing/served_model_fixture.h"
#include "server/repository/checksums.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

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

}  // namespace
}  // namespace saccade::server
