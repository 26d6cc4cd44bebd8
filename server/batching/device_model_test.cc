#include "server/batching/device_model.h"

#include <algorithm>
#include <atomic>
#include <ctime>
#include <iostream>
#include <memory>
#include <new>
#include <optional>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "server/batching/testing/recording_task.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using Model = DeviceModel<BatchTask>;
using Batch = Model::Tasks;

class DeviceModelTest : public ::testing::Test {
 protected:
  // No thread is in Take() yet, but the instances are idle: the first tasks are assigned to them, later ones
  // are queued.
  void MakeModel(const BatcherOptions& options, int instances = 1) {
    auto model = Model::Create(options, Devices(instances), &devices_);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = *std::move(model);
  }

  // Submits a task that must be accepted; returns its Fate.
  std::shared_ptr<Fate> Submit(BatchTask::Traits traits = {}) {
    traits.arrival = clock_.Now();
    auto [task, fate] = MakeTask(std::move(traits));
    const absl::Status taken = model_->Submit(task);
    EXPECT_TRUE(taken.ok()) << taken;
    return fate;
  }

  // Finishes the instance's last batch and returns its next one.
  Batch Next(int instance = 0) {
    model_->Finished(instance, /*learn=*/false);
    return model_->Take(instance);
  }

  // Blocks until so many instances' threads wait.
  void AwaitThreads(int count) {
    constexpr int kTimer = 1;
    clock_.AwaitWaiters(count + kTimer);
  }

  FakeClock clock_;
  DeviceGroup devices_{{.cores = 4}, &clock_};
  std::unique_ptr<Model> model_;
};

// Calls Take() on a thread of its own; Join() returns the result.
class Taker {
 public:
  explicit Taker(Model* model, int instance = 0)
      : thread_([this, model, instance] { batch_ = model->Take(instance); }) {}
  ~Taker() {
    if (thread_.joinable()) thread_.join();
  }
  Batch Join() {
    thread_.join();
    return std::move(batch_);
  }

 private:
  Batch batch_;
  std::thread thread_;
};

TEST_F(DeviceModelTest, BadOptionsAreAnError) {
  EXPECT_EQ(Model::Create({.max_batch_size = 0}, {0}, &devices_).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceModelTest, IdleInstanceTakesWorkAtOnce) {
  MakeModel({});
  Taker taker(model_.get());
  AwaitThreads(1);
  const auto fate = Submit();
  // The clock was never advanced.
  const Batch batch = taker.Join();
  ASSERT_EQ(batch.size(), 1u);
  EXPECT_EQ(FateOf(batch[0]), fate);
}

TEST_F(DeviceModelTest, BatchFormsBehindABusyInstance) {
  MakeModel({.max_batch_size = 3});
  for (int i = 0; i < 6; ++i) Submit();
  EXPECT_EQ(model_->Take(0).size(), 1u);
  EXPECT_EQ(model_->queued(), 5);
  EXPECT_EQ(Next().size(), 3u);
  EXPECT_EQ(Next().size(), 2u);
  EXPECT_EQ(model_->queued(), 0);
}

// What was submitted comes back as its own type, whichever way it takes.
TEST_F(DeviceModelTest, TasksKeepTheirType) {
  auto model = *DeviceModel<RecordingTask>::Create({.max_batch_size = 1}, {0}, &devices_);
  const auto fate = std::make_shared<Fate>();
  const auto make = [&] {
    return std::make_unique<RecordingTask>(fate, BatchTask::Traits{.arrival = clock_.Now()});
  };
  std::unique_ptr<RecordingTask> task = make();
  ASSERT_TRUE(model->Submit(task).ok());
  EXPECT_EQ(task, nullptr);
  EXPECT_EQ(model->Take(0).at(0)->fate(), fate);
  model->Finished(0, /*learn=*/false);
  model->Learn(0, 1, absl::Microseconds(5));
  task = make();
  std::optional<TinyBatch<RecordingTask>> tiny;
  ASSERT_TRUE(model->Submit(task, &tiny).ok());
  ASSERT_TRUE(tiny.has_value());
  EXPECT_EQ(tiny->tasks.at(0)->fate(), fate);
  model->Finished(tiny->instance, /*learn=*/false);
  model->Close();
  task = make();
  EXPECT_FALSE(model->Submit(task).ok());
  ASSERT_NE(task, nullptr) << "it is still the caller's";
  EXPECT_EQ(task->fate()->rejections, 0);
}

// If a pass over four items takes little longer than over one, and requests arrive fast, an idle instance
// waits.
TEST_F(DeviceModelTest, WaitsForCompanyThatPaysUntilTheDelay) {
  MakeModel({.max_batch_size = 8, .max_queue_delay = absl::Milliseconds(10)});
  model_->Learn(0, 1, absl::Milliseconds(20));
  model_->Learn(0, 8, absl::Milliseconds(27));
  for (int i = 0; i < 600; ++i) {
    Submit();
    clock_.Advance(absl::Milliseconds(5));
    if (i % 4 == 0) Next();
  }
  while (model_->queued() > 0) Next();
  model_->Finished(0, false);
  Taker taker(model_.get());
  AwaitThreads(1);
  Submit();
  clock_.Advance(absl::Milliseconds(6));
  Submit();
  clock_.Advance(absl::Milliseconds(4));
  EXPECT_EQ(taker.Join().size(), 2u);
}

TEST_F(DeviceModelTest, CloseEndsEveryWait) {
  MakeModel({}, 3);
  Taker a(model_.get(), 0);
  Taker b(model_.get(), 1);
  Taker c(model_.get(), 2);
  AwaitThreads(3);
  model_->Close();
  EXPECT_TRUE(a.Join().empty());
  EXPECT_TRUE(b.Join().empty());
  EXPECT_TRUE(c.Join().empty());
}

TEST_F(DeviceModelTest, CloseHandsOutWhatIsQueued) {
  MakeModel({.max_batch_size = 2});
  for (int i = 0; i < 4; ++i) Submit();
  model_->Close();
  model_->Close();
  EXPECT_EQ(model_->Take(0).size(), 1u);
  EXPECT_EQ(Next().size(), 2u);
  EXPECT_EQ(Next().size(), 1u);
  EXPECT_TRUE(Next().empty());
  auto [task, fate] = MakeTask({});
  EXPECT_EQ(model_->Submit(task).code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(task, nullptr);
  EXPECT_EQ(fate->rejections, 0);
}

TEST_F(DeviceModelTest, DestructorRejectsWhatIsLeft) {
  MakeModel({.max_batch_size = 1});
  const auto handed_out = Submit();
  const auto queued = Submit();
  model_.reset();
  for (const auto& fate : {handed_out, queued}) {
    EXPECT_EQ(fate->rejections, 1);
    EXPECT_EQ(fate->why.code(), absl::StatusCode::kUnavailable);
  }
}

// Submits another task when it is rejected, like a client that retries.
class Meddler final : public BatchTask {
 public:
  Meddler(Model* model, Traits traits) : BatchTask(std::move(traits)), model_(model) {}
  void Reject(absl::Status) override {
    Traits again = traits();
    again.deadline = absl::InfiniteFuture();
    std::unique_ptr<BatchTask> task = MakeTask(again).task;
    EXPECT_TRUE(model_->Submit(task).ok());
  }

 private:
  Model* const model_;
};

TEST_F(DeviceModelTest, RejectMayCallTheModel) {
  MakeModel({.max_batch_size = 2});
  Submit();
  for (int i = 0; i < 2; ++i) {
    std::unique_ptr<BatchTask> task = std::make_unique<Meddler>(
        model_.get(),
        BatchTask::Traits{.arrival = clock_.Now(), .deadline = clock_.Now() + absl::Seconds(1)});
    ASSERT_TRUE(model_->Submit(task).ok());
  }
  EXPECT_EQ(model_->Take(0).size(), 1u);
  clock_.Advance(absl::Seconds(1));
  EXPECT_EQ(Next().size() + model_->queued(), 2u) << "what the rejected ones submitted";
}

TEST_F(DeviceModelTest, CancelStormRunsNoneOfTheCancelled) {
  MakeModel({.max_batch_size = 8, .max_queue_size = 1000});
  Submit();
  std::vector<std::shared_ptr<Fate>> fates;
  for (int i = 0; i < 1000; ++i) fates.push_back(Submit());
  for (int i = 0; i < 1000; ++i) {
    if (i % 10 != 0) fates[i]->cancellation.Cancel();
  }
  model_->Close();
  EXPECT_EQ(model_->Take(0).size(), 1u);
  int taken = 0;
  for (Batch batch = Next(); !batch.empty(); batch = Next()) {
    for (const auto& task : batch) EXPECT_FALSE(FateOf(task)->cancellation.cancelled());
    taken += static_cast<int>(batch.size());
  }
  EXPECT_EQ(taken, 100);
  int rejected = 0;
  for (const auto& fate : fates) rejected += fate->rejections;
  EXPECT_EQ(rejected, 900);
}

TEST_F(DeviceModelTest, EachSubmitWakesAnIdleInstance) {
  MakeModel({.max_batch_size = 1}, 4);
  std::vector<std::unique_ptr<Taker>> takers;
  for (int i = 0; i < 4; ++i) takers.push_back(std::make_unique<Taker>(model_.get(), i));
  AwaitThreads(4);
  std::set<std::shared_ptr<Fate>> submitted;
  for (int i = 0; i < 4; ++i) submitted.insert(Submit());
  std::set<std::shared_ptr<Fate>> taken;
  for (auto& taker : takers) {
    const Batch batch = taker->Join();
    ASSERT_EQ(batch.size(), 1u);
    taken.insert(FateOf(batch[0]));
  }
  EXPECT_EQ(taken, submitted);
}

TEST_F(DeviceModelTest, ATinyBatchIsForWhoBringsIt) {
  MakeModel({.max_batch_size = 1});
  model_->Learn(0, 1, absl::Microseconds(5));
  std::optional<TinyBatch<BatchTask>> tiny;
  std::unique_ptr<BatchTask> first = MakeTask({.arrival = clock_.Now()}).task;
  std::unique_ptr<BatchTask> second = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(model_->Submit(first, &tiny).ok());
  ASSERT_TRUE(tiny.has_value());
  EXPECT_EQ(tiny->tasks.size(), 1u);
  std::optional<TinyBatch<BatchTask>> none;
  ASSERT_TRUE(model_->Submit(second, &none).ok());
  EXPECT_FALSE(none.has_value()) << "its instance computes the first";
  EXPECT_EQ(Next(tiny->instance).size(), 1u) << "which its own thread takes";
}

TEST_F(DeviceModelTest, WhoComputedATinyBatchGoesOnWithTheNext) {
  MakeModel({.max_batch_size = 4});
  for (int size = 1; size <= 4; ++size) model_->Learn(0, size, absl::Microseconds(50 * size));
  std::optional<TinyBatch<BatchTask>> tiny;
  std::vector<std::unique_ptr<BatchTask>> tasks;
  for (int i = 0; i < 7; ++i) tasks.push_back(MakeTask({.arrival = clock_.Now()}).task);
  ASSERT_TRUE(model_->Submit(tasks[0], &tiny).ok());
  ASSERT_TRUE(tiny.has_value());
  std::optional<TinyBatch<BatchTask>> none;
  for (size_t i = 1; i < tasks.size(); ++i) ASSERT_TRUE(model_->Submit(tasks[i], &none).ok());
  EXPECT_FALSE(none.has_value()) << "its instance computes the first";
  std::optional<TinyBatch<BatchTask>> next;
  model_->Finished(tiny->instance, false, &next);
  ASSERT_TRUE(next.has_value()) << "four take longer than one alone may, but less than four hand-offs";
  EXPECT_EQ(next->tasks.size(), 4u);
  model_->Finished(next->instance, false);
  EXPECT_EQ(model_->Take(0).size(), 2u) << "what its thread takes, as nobody else does";
}

TEST_F(DeviceModelTest, ALongerBatchIsForTheInstancesThread) {
  MakeModel({.max_batch_size = 1});
  model_->Learn(0, 1, absl::Milliseconds(5));
  std::optional<TinyBatch<BatchTask>> tiny;
  std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(model_->Submit(task, &tiny).ok());
  EXPECT_FALSE(tiny.has_value());
  EXPECT_EQ(model_->Take(0).size(), 1u);
}

TEST_F(DeviceModelTest, AnotherModelsThreadIsWokenForItsOwnWork) {
  DeviceGroup narrow({.cores = 1}, &clock_);
  auto a = *Model::Create({.max_batch_size = 1}, {0}, &narrow);
  auto b = *Model::Create({.max_batch_size = 1}, {0}, &narrow);
  std::unique_ptr<BatchTask> first = MakeTask({}).task;
  std::unique_ptr<BatchTask> second = MakeTask({}).task;
  ASSERT_TRUE(a->Submit(first).ok());
  ASSERT_TRUE(b->Submit(second).ok());
  Taker taker(b.get());
  EXPECT_EQ(a->Take(0).size(), 1u);
  EXPECT_EQ(b->queued(), 1) << "the only core is taken";
  a->Finished(0, false);
  EXPECT_EQ(taker.Join().size(), 1u);
}

TEST_F(DeviceModelTest, ABatchOfWhichNothingIsKnownIsForTheInstancesThread) {
  MakeModel({.max_batch_size = 1});
  std::optional<TinyBatch<BatchTask>> tiny;
  std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(model_->Submit(task, &tiny).ok());
  EXPECT_FALSE(tiny.has_value());
  EXPECT_EQ(model_->Take(0).size(), 1u);
}

// A hanging pass releases its cores after a second. Submitting the tiny batch is the first call that notices
// it.
TEST_F(DeviceModelTest, WhoBringsATinyBatchHandsOthersToTheirThreads) {
  auto hanging = *Model::Create({.max_batch_size = 1, .threads = 4}, {0}, &devices_);
  auto waiting = *Model::Create({.max_batch_size = 1, .threads = 2}, {0}, &devices_);
  MakeModel({.max_batch_size = 1});
  model_->Learn(0, 1, absl::Microseconds(5));
  for (Model* model : {hanging.get(), waiting.get()}) {
    std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock_.Now()}).task;
    ASSERT_TRUE(model->Submit(task).ok());
  }
  EXPECT_EQ(hanging->Take(0).size(), 1u);
  EXPECT_EQ(waiting->queued(), 1);
  clock_.Advance(absl::Seconds(1));
  std::optional<TinyBatch<BatchTask>> tiny;
  std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(model_->Submit(task, &tiny).ok());
  EXPECT_TRUE(tiny.has_value());
  EXPECT_EQ(waiting->Take(0).size(), 1u);
}

TEST_F(DeviceModelTest, AModelThatGoesLeavesOthersTheirBatches) {
  MakeModel({.max_batch_size = 1});
  auto other = *Model::Create({.max_batch_size = 1}, {0}, &devices_);
  const auto mine = Submit();
  auto [task, fate] = MakeTask({.arrival = clock_.Now()});
  ASSERT_TRUE(other->Submit(task).ok());
  model_.reset();
  EXPECT_EQ(mine->rejections, 1);
  EXPECT_EQ(fate->rejections, 0);
  EXPECT_EQ(other->Take(0).size(), 1u);
}

TEST_F(DeviceModelTest, AClosedModelWaitsForTheCoresThatItsLastRequestsNeed) {
  DeviceGroup narrow({.cores = 1}, &clock_);
  auto a = *Model::Create({.max_batch_size = 1}, {0}, &narrow);
  auto b = *Model::Create({.max_batch_size = 1}, {0}, &narrow);
  std::unique_ptr<BatchTask> first = MakeTask({.arrival = clock_.Now()}).task;
  std::unique_ptr<BatchTask> second = MakeTask({.arrival = clock_.Now()}).task;
  ASSERT_TRUE(a->Submit(first).ok());
  EXPECT_EQ(a->Take(0).size(), 1u);
  {
    Taker taker(b.get());
    clock_.AwaitWaiters(3);  // and the timers of both groups
    ASSERT_TRUE(b->Submit(second).ok());
    b->Close();
    clock_.Advance(absl::Milliseconds(500));
    EXPECT_EQ(b->queued(), 1);
    a->Finished(0, false);
    EXPECT_EQ(taker.Join().size(), 1u);
  }
  b->Finished(0, false);
  EXPECT_TRUE(b->Take(0).empty());
}

TEST_F(DeviceModelTest, MemoryThatWasShortKeepsBatchesSmall) {
  MakeModel({.max_batch_size = 8});
  for (int i = 0; i < 9; ++i) Submit();
  EXPECT_EQ(model_->Take(0).size(), 1u);
  model_->ReduceBatches(0, 8);
  EXPECT_EQ(Next().size(), 4u);
}

TEST_F(DeviceModelTest, ASweepAnswersThoseWhoWaitBehindAPassThatHangs) {
  MakeModel({.max_batch_size = 1});
  Submit();
  EXPECT_EQ(model_->Take(0).size(), 1u);
  const auto late = Submit({.deadline = clock_.Now() + absl::Seconds(1)});
  const auto patient = Submit();
  clock_.Advance(absl::Seconds(1));
  devices_.Sweep();
  EXPECT_EQ(late->rejections, 1);
  EXPECT_TRUE(absl::IsDeadlineExceeded(late->why));
  EXPECT_EQ(patient->rejections, 0);
}

// Has no memory for its answer.
class BrokenTask final : public BatchTask {
 public:
  using BatchTask::BatchTask;
  void Reject(absl::Status /*why*/) override { throw std::bad_alloc(); }
};

TEST_F(DeviceModelTest, ATaskThatCannotBeRejectedStopsNoOther) {
  std::atomic<int> errors = 0;
  DeviceGroup devices({.cores = 4}, &clock_, [&](const char* /*error*/) { ++errors; });
  auto model = *Model::Create({.max_batch_size = 1}, {0}, &devices);
  const BatchTask::Traits traits{.arrival = clock_.Now(), .deadline = clock_.Now() + absl::Seconds(1)};
  auto [running, ended] = MakeTask(traits);
  ASSERT_TRUE(model->Submit(running).ok());
  EXPECT_EQ(model->Take(0).size(), 1u);
  std::unique_ptr<BatchTask> broken = std::make_unique<BrokenTask>(traits);
  ASSERT_TRUE(model->Submit(broken).ok());
  auto [task, late] = MakeTask(traits);
  ASSERT_TRUE(model->Submit(task).ok());
  clock_.Advance(absl::Seconds(1));
  EXPECT_NO_THROW(devices.Sweep());
  EXPECT_EQ(late->rejections, 1);
  EXPECT_EQ(errors, 1);
}

// Has no memory once.
class BrokenClock final : public Clock {
 public:
  absl::Time Now() override {
    const int call = calls_.fetch_add(1);
    if (call == 0) throw std::bad_alloc();
    // After the one that ends the pause.
    if (call == 2) went_on.Notify();
    return Clock::Real()->Now();
  }
  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) override {
    return Clock::Real()->AwaitUntil(mutex, condition, deadline);
  }

  absl::Notification went_on;

 private:
  std::atomic<int> calls_ = 0;
};

TEST(DeviceGroupTest, TheTimerGoesOnAfterAnException) {
  BrokenClock clock;
  absl::Notification told;
  const DeviceGroup devices({}, &clock, [&](const char* /*error*/) { told.Notify(); });
  told.WaitForNotification();
  EXPECT_TRUE(clock.went_on.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

// Has no memory for the first wait.
class BrokenWait final : public Clock {
 public:
  absl::Time Now() override { return Clock::Real()->Now(); }
  bool AwaitUntil(absl::Mutex* mutex, const absl::Condition& condition, absl::Time deadline) override {
    const int call = calls_.fetch_add(1);
    if (call == 0) throw std::bad_alloc();
    if (call == 1) went_on.Notify();
    return Clock::Real()->AwaitUntil(mutex, condition, deadline);
  }

  absl::Notification went_on;

 private:
  std::atomic<int> calls_ = 0;
};

TEST(DeviceGroupTest, TheTimerGoesOnAfterAWaitThatFails) {
  BrokenWait clock;
  absl::Notification told;
  const DeviceGroup devices({}, &clock, [&](const char* /*error*/) { told.Notify(); });
  told.WaitForNotification();
  EXPECT_TRUE(clock.went_on.WaitForNotificationWithTimeout(absl::Seconds(30)));
}

TEST(DeviceGroupTest, AWakerTakesThePlaceOfThreads) {
  class Recorder final : public Waker {
   public:
    void WakeInstance(Scheduler::ModelId model, int instance) override {
      woken.emplace_back(model, instance);
    }
    void WakeTimer() override { ++timer; }

    std::vector<std::pair<Scheduler::ModelId, int>> woken;
    int timer = 0;
  };
  Recorder waker;
  FakeClock clock;
  DeviceGroup devices({}, &clock, /*report=*/nullptr, &waker);
  auto created = Model::Create({.max_batch_size = 1}, Devices(2), &devices);
  ASSERT_TRUE(created.ok()) << created.status();
  const std::unique_ptr<Model> model = *std::move(created);
  EXPECT_EQ(model->TryTake(0), std::nullopt);
  auto [task, fate] = MakeTask({.arrival = clock.Now()});
  ASSERT_TRUE(model->Submit(task).ok());
  EXPECT_EQ(waker.woken, (std::vector{std::pair(model->id(), 0)}));
  EXPECT_EQ(model->TryTake(0)->size(), 1u);
  EXPECT_EQ(model->TryTake(0), std::nullopt);
  // The timer's thread would have nothing to wait for.
  EXPECT_EQ(devices.HandOutDue(), absl::InfiniteFuture());
  model->Finished(0, /*learn=*/true);
  model->Close();
  EXPECT_EQ(waker.woken.size(), 3u) << "both instances' threads may end";
  EXPECT_TRUE(model->TryTake(0)->empty());
  EXPECT_TRUE(model->TryTake(1)->empty());
}

TEST_F(DeviceModelTest, AClosedModelsThreadsEndWhenItsLastTaskIsDropped) {
  MakeModel({.max_batch_size = 1, .threads = 4}, 2);
  Submit();
  EXPECT_EQ(model_->Take(0).size(), 1u);
  // The only cores are taken, so the second instance's thread waits.
  const auto last = Submit();
  Taker taker(model_.get(), 1);
  AwaitThreads(1);
  model_->Close();
  last->cancellation.Cancel();
  model_->Finished(0, /*learn=*/false);
  EXPECT_TRUE(taker.Join().empty());
  EXPECT_EQ(last->rejections, 1);
}

class CountingClock final : public Clock {
 public:
  absl::Time Now() override {
    ++looks;
    return clock_.Now();
  }
  bool AwaitUntil(absl::Mutex* mu, const absl::Condition& condition, absl::Time deadline) override {
    return clock_.AwaitUntil(mu, condition, deadline);
  }

  int64_t looks = 0;

 private:
  FakeClock clock_;
};

class CountingWaker final : public Waker {
 public:
  void WakeInstance(Scheduler::ModelId /*model*/, int /*instance*/) override { ++instances; }
  void WakeTimer() override { ++timers; }

  int64_t instances = 0;
  int64_t timers = 0;
};

TEST(DeviceGroupCostTest, IdleModelsAreNotWoken) {
  constexpr int kRequests = 500;
  // How often instances and the timer are woken, and how often the time is read.
  const auto work = [](int idle_models) {
    CountingClock clock;
    CountingWaker waker;
    DeviceGroup devices({.cores = 4}, &clock, /*report=*/nullptr, &waker);
    std::vector<std::unique_ptr<Model>> idle;
    for (int i = 0; i < idle_models; ++i) {
      idle.push_back(*Model::Create({.max_batch_size = 1}, {0}, &devices));
      EXPECT_FALSE(idle.back()->TryTake(0).has_value());
    }
    auto busy = *Model::Create({.max_batch_size = 1}, {0}, &devices);
    EXPECT_FALSE(busy->TryTake(0).has_value());
    const std::vector<int64_t> before = {waker.instances, waker.timers, clock.looks};
    for (int i = 0; i < kRequests; ++i) {
      std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock.Now()}).task;
      EXPECT_TRUE(busy->Submit(task).ok());
      const auto batch = busy->TryTake(0);
      EXPECT_TRUE(batch.has_value() && batch->size() == 1);
      busy->Finished(0, /*learn=*/false);
    }
    return std::vector<int64_t>{waker.instances - before[0], waker.timers - before[1],
                                clock.looks - before[2]};
  };
  const std::vector<int64_t> alone = work(0);
  EXPECT_EQ(alone[0], kRequests) << "a batch wakes its instance";
  EXPECT_EQ(work(199), alone);
}

// What a request costs must not grow with the models that have none.
TEST(DeviceGroupCostTest, IdleModelsCostNothing) {
  const auto processor_time = [](int idle_models) {
    FakeClock clock;
    DeviceGroup devices({.cores = 4}, &clock);
    std::vector<std::unique_ptr<Model>> idle;
    std::vector<std::thread> threads;
    for (int i = 0; i < idle_models; ++i) {
      idle.push_back(*Model::Create({.max_batch_size = 1}, {0}, &devices));
      threads.emplace_back([model = idle.back().get()] { model->Take(0); });
    }
    clock.AwaitWaiters(idle_models + 1);
    auto busy = *Model::Create({.max_batch_size = 1}, {0}, &devices);
    const std::clock_t begin = std::clock();
    for (int i = 0; i < 5000; ++i) {
      std::unique_ptr<BatchTask> task = MakeTask({.arrival = clock.Now()}).task;
      EXPECT_TRUE(busy->Submit(task).ok());
      EXPECT_EQ(busy->Take(0).size(), 1u);
      busy->Finished(0, /*learn=*/false);
    }
    const std::clock_t took = std::clock() - begin;
    for (const auto& model : idle) model->Close();
    for (auto& thread : threads) thread.join();
    return static_cast<double>(took) / CLOCKS_PER_SEC;
  };
  // The least of some runs: the machine may be busy.
  double none = 1e9;
  double many = 1e9;
  for (int run = 0; run < 3; ++run) {
    none = std::min(none, processor_time(0));
    many = std::min(many, processor_time(200));
  }
  std::cout << "5,000 requests: " << 1e3 * none << " ms without idle models, " << 1e3 * many
            << " ms beside 200\n";
  EXPECT_LT(many, 2 * none);
}

// Runs submitters, cancellers, a moving clock and instances concurrently; at the end every task has had
// exactly one outcome.
TEST_F(DeviceModelTest, EveryTaskHasOneFateUnderManyThreads) {
  MakeModel({.max_batch_size = 4, .max_queue_size = 32, .max_queue_delay = absl::Milliseconds(2)}, 3);
  constexpr int kSubmitters = 3;
  constexpr int kEach = 2000;
  std::vector<std::shared_ptr<Fate>> fates[kSubmitters];
  std::atomic<int> refused{0};
  std::atomic<int> taken{0};
  std::vector<std::thread> instances;
  for (int i = 0; i < 3; ++i) {
    instances.emplace_back([&, i] {
      for (Batch batch = model_->Take(i); !batch.empty(); batch = Next(i)) {
        for (const auto& task : batch) {
          EXPECT_EQ(FateOf(task)->rejections, 0);
          EXPECT_EQ(task->bucket(), batch[0]->bucket());
        }
        taken += static_cast<int>(batch.size());
      }
    });
  }
  std::vector<std::thread> submitters;
  for (int s = 0; s < kSubmitters; ++s) {
    submitters.emplace_back([&, s] {
      std::mt19937 random(static_cast<unsigned>(s));
      for (int i = 0; i < kEach; ++i) {
        const absl::Time now = clock_.Now();
        auto [task, fate] = MakeTask({.size = 1 + static_cast<int64_t>(random() % 3),
                                      .bucket = static_cast<int64_t>(random() % 3),
                                      .priority = static_cast<int>(random() % 2),
                                      .arrival = now,
                                      .deadline = now + absl::Milliseconds(random() % 10)});
        if (model_->Submit(task).ok()) {
          fates[s].push_back(fate);
        } else {
          ++refused;
        }
        if (random() % 4 == 0) fate->cancellation.Cancel();
        if (random() % 4 == 0) clock_.Advance(absl::Milliseconds(1));
      }
    });
  }
  for (auto& thread : submitters) thread.join();
  model_->Close();
  for (auto& thread : instances) thread.join();
  int rejected = 0;
  for (const auto& mine : fates) {
    for (const auto& fate : mine) {
      EXPECT_LE(fate->rejections, 1);
      EXPECT_TRUE(fate->destroyed);
      rejected += fate->rejections;
    }
  }
  EXPECT_EQ(taken + rejected + refused, kSubmitters * kEach);
  EXPECT_GT(taken, 0);
}

}  // namespace
}  // namespace saccade::server
