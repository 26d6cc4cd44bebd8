#include "server/catalog/model_host.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/programs/testing/scripts.h"
#include "server/catalog/testing/gate_clock.h"
#include "server/core/fake_clock.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kMiB = 1 << 20;

constexpr char kProgram[] =
    "backend: \"pytorch\" max_batch_size: 2\n"
    "input { name: \"x\" data_type: TYPE_FP32 dims: [ 2 ] }\n"
    "output { name: \"y\" data_type: TYPE_FP32 dims: [ 2 ] }\n";
constexpr char kAddsOne[] = "def forward(self, x):\n    return x + 1\n";

struct Files {
  ModelEntry entry;
  ModelStamp stamp;
};

// The weights only have a size: identity reads none. A load is expected to need twice as much, and one that
// is measured needs as much.
class ModelHostTest : public testing::Test {
 protected:
  Files Write(const std::string& model, int64_t mib, const std::string& config = "") const {
    repository_.Write(
        absl::StrCat(model, "/config.pbtxt"),
        absl::StrCat(
            "max_batch_size: 2 parameters { key: \"architecture\" value { string_value: \"identity\" } }\n",
            config));
    repository_.Write(absl::StrCat(model, "/1/weights.safetensors"), "");
    std::filesystem::resize_file(repository_.path() / model / "1" / "weights.safetensors",
                                 static_cast<uintmax_t>(mib * kMiB));
    return Read(model);
  }
  Files Read(const std::string& model) const {
    auto entry = ReadModel(repository_.string(), model);
    auto stamp = StampModel(repository_.string(), model);
    if (!entry.ok() || !stamp.ok()) {
      ADD_FAILURE() << entry.status() << ", " << stamp.status();
      return {};
    }
    return {*std::move(entry), *std::move(stamp)};
  }
  // A program of the methods in `source`.
  Files WriteProgram(const std::string& model, const std::string& source = kAddsOne) const {
    repository_.Write(absl::StrCat(model, "/config.pbtxt"), kProgram);
    std::filesystem::create_directories(repository_.path() / model / "1");
    models::testing::SaveScript(source, (repository_.path() / model / "1" / "model.pt").string());
    return Read(model);
  }
  Files CopyProgram(const std::string& model, const std::string& to) const {
    std::filesystem::copy(repository_.path() / model, repository_.path() / to,
                          std::filesystem::copy_options::recursive);
    return Read(to);
  }
  // Afterwards, the model of 20 MiB that is named "first" is loaded, and so its kind is measured.
  void Start(int64_t max_mib) {
    options_.max_model_bytes = max_mib * kMiB;
    host_.emplace(&options_,
                  ModelHost::Hooks{.released = [] {},
                                   .closed = [this] { return closed_; },
                                   .ended_ahead =
                                       [this] {
                                         if (ended_ahead_) ended_ahead_();
                                       }},
                  &table_, &gate_, &metrics_);
    ASSERT_TRUE(Apply(Write("first", 20)).ok());
    ASSERT_EQ(host_->MemoryInUse(), 20 * kMiB);
  }
  absl::Status Apply(const Files& files) {
    return host_->Apply(files.entry, files.stamp, /*all_anew=*/false, {});
  }
  // A trial of the model "first" that has found two instances with a thread each better for what serves now.
  ModelHost::ThreadTrial Measured() const {
    const auto serving = table_.FindReady("first", 0);
    EXPECT_TRUE(serving.ok()) << serving.status();
    if (!serving.ok()) return {};
    return {.model = "first",
            .version = 1,
            .measured = *serving,
            .best = InstanceSplit{.instances = 2, .threads = 1}};
  }
  // How many trials have ended with the result.
  int Trials(const std::string& result) {
    const std::string line = absl::StrCat("saccade_thread_trials_total{result=\"", result, "\"} ");
    const std::string text = metrics_.Exposition();
    const size_t found = text.find(line);
    return found == std::string::npos ? -1 : std::stoi(text.substr(found + line.size()));
  }
  bool LoadAhead(const Files& files) { return host_->LoadAhead(files.entry, files.stamp, &skipped_bytes_); }

  TestRepository repository_;
  FakeClock clock_;
  GateClock gate_{&clock_};
  Metrics metrics_{"test"};
  ModelTable table_;
  bool closed_ = false;
  // Called when a load ahead has ended.
  std::function<void()> ended_ahead_;
  CatalogOptions options_ = {.cores = 4};
  std::optional<ModelHost> host_;
  int64_t skipped_bytes_ = 0;
};

TEST_F(ModelHostTest, LoadsAheadKeepToTheMemory) {
  Start(139);
  const Files a = Write("a", 20);
  const Files b = Write("b", 20);
  const Files c = Write("c", 20);
  // In the order in which they are wanted, which is not that of their names.
  EXPECT_TRUE(LoadAhead(c));
  EXPECT_TRUE(LoadAhead(a));
  EXPECT_FALSE(LoadAhead(b)) << "20 MiB are held, two loads need 40 each, and so would this one";
  EXPECT_THAT(host_->AheadOf("c"), ElementsAre(1));
  EXPECT_THAT(host_->AheadOf("a"), ElementsAre(1));
  EXPECT_THAT(host_->AheadOf("b"), IsEmpty());
  EXPECT_EQ(host_->MemoryAhead(), 80 * kMiB);
  EXPECT_EQ(host_->MemoryAhead("c"), 40 * kMiB);
  ASSERT_TRUE(Apply(c).ok());
  EXPECT_EQ(host_->MemoryInUse(), 40 * kMiB);
  EXPECT_EQ(host_->MemoryAhead(), 40 * kMiB);
  EXPECT_TRUE(LoadAhead(b)) << "c holds less than was expected";
  for (const Files& files : {a, b}) EXPECT_TRUE(Apply(files).ok());
  EXPECT_EQ(host_->MemoryInUse(), 80 * kMiB);
  EXPECT_EQ(host_->MemoryAhead(), 0);
}

TEST_F(ModelHostTest, AModelThatIsMeasuredIsNotLoadedAheadAndItsMemoryIsKeptFree) {
  Start(159);
  const Files other_kind = Write("other_kind", 30);
  EXPECT_FALSE(host_->CanLoadAhead(other_kind.entry));
  EXPECT_EQ(host_->ExpectedBytes(other_kind.entry, other_kind.stamp, false), 60 * kMiB);
  EXPECT_TRUE(LoadAhead(other_kind));
  EXPECT_THAT(host_->AheadOf("other_kind"), IsEmpty());
  EXPECT_EQ(skipped_bytes_, 60 * kMiB);
  EXPECT_TRUE(LoadAhead(Write("a", 20)));
  EXPECT_FALSE(LoadAhead(Write("b", 20))) << "20 held, 60 for the one that is measured, 40 each";
}

TEST_F(ModelHostTest, OnlyVersionsThatHaveChangedNeedMemory) {
  Start(0);
  const Files same = Write("first", 20);
  ASSERT_TRUE(Apply(same).ok());
  EXPECT_TRUE(host_->IsUnchanged(same.entry, same.stamp, false));
  EXPECT_FALSE(host_->IsUnchanged(same.entry, same.stamp, true));
  EXPECT_EQ(host_->ExpectedBytes(same.entry, same.stamp, false), 0);
  EXPECT_EQ(host_->ExpectedBytes(same.entry, same.stamp, true), 40 * kMiB);
  const Files larger = Write("first", 30);
  EXPECT_FALSE(host_->IsUnchanged(larger.entry, larger.stamp, false));
  EXPECT_EQ(host_->ExpectedBytes(larger.entry, larger.stamp, false), 60 * kMiB);
  const Files other = Write("other", 20);
  EXPECT_FALSE(host_->IsUnchanged(other.entry, other.stamp, false)) << "it is not loaded";
}

TEST_F(ModelHostTest, NoMoreVersionsAreLoadedAheadThanThereAreCores) {
  Start(0);
  Files many = Write("many", 20);
  for (int64_t version = 2; version <= 6; ++version) {
    many.entry.versions.push_back(many.entry.versions[0]);
    many.entry.versions.back().version = version;
  }
  EXPECT_FALSE(host_->CanLoadAhead(many.entry)) << "it would take six threads";
  EXPECT_FALSE(LoadAhead(many));
  EXPECT_EQ(host_->AheadOf("many").size(), 4);
  EXPECT_FALSE(LoadAhead(Write("b", 20)));
  host_->DropAllAhead("b");
  EXPECT_THAT(host_->AheadOf("many"), IsEmpty());
  EXPECT_TRUE(LoadAhead(Write("b", 20)));
  host_->DropAllAhead("b");
  EXPECT_THAT(host_->AheadOf("b"), ElementsAre(1));
}

TEST_F(ModelHostTest, WhatIsNotTakenIsFreed) {
  Start(100);
  const Files a = Write("a", 20);
  EXPECT_TRUE(host_->CanLoadAhead(a.entry));
  EXPECT_TRUE(LoadAhead(a));
  EXPECT_TRUE(LoadAhead(a)) << "nothing happens";
  EXPECT_EQ(host_->MemoryAhead(), 40 * kMiB);
  host_->DropAhead("a");
  EXPECT_THAT(host_->AheadOf("a"), IsEmpty());
  EXPECT_TRUE(host_->HasEndedAhead("a"));
  EXPECT_EQ(host_->MemoryAhead(), 0);
}

TEST_F(ModelHostTest, AModelThatIsLoadedIsNotLoadedAhead) {
  Start(0);
  const Files again = Write("first", 20);
  EXPECT_FALSE(host_->CanLoadAhead(again.entry));
  EXPECT_TRUE(LoadAhead(again));
  EXPECT_THAT(host_->AheadOf("first"), IsEmpty());
}

TEST_F(ModelHostTest, AProgramIsLoadedAheadOnceItsContentsWereMeasured) {
  options_.permissions.executable = true;
  Start(0);
  const Files program = WriteProgram("program");
  EXPECT_FALSE(host_->CanLoadAhead(program.entry)) << "it was never measured";
  EXPECT_TRUE(LoadAhead(program));
  EXPECT_THAT(host_->AheadOf("program"), IsEmpty());
  ASSERT_TRUE(Apply(program).ok());
  const int64_t held = host_->MemoryOf("program");
  EXPECT_GT(held, 0);
  const Files copy = CopyProgram("program", "copy");
  EXPECT_TRUE(host_->CanLoadAhead(copy.entry));
  EXPECT_GE(host_->ExpectedBytes(copy.entry, copy.stamp, false), held);
  EXPECT_TRUE(LoadAhead(copy));
  EXPECT_THAT(host_->AheadOf("copy"), ElementsAre(1));
  ASSERT_TRUE(Apply(copy).ok());
  EXPECT_EQ(host_->MemoryOf("copy"), held);
  const Files other = WriteProgram("other", "def forward(self, x):\n    return x + 2\n");
  EXPECT_FALSE(host_->CanLoadAhead(other.entry));
}

TEST_F(ModelHostTest, AProgramWhoseLoadAheadFailedIsLoadedAgainAlone) {
  options_.permissions.executable = true;
  Start(0);
  ASSERT_TRUE(Apply(WriteProgram("program")).ok());
  const Files copy = CopyProgram("program", "copy");
  const std::filesystem::path file = repository_.path() / "copy" / "1" / "model.pt";
  const std::filesystem::path hidden = repository_.path() / "copy" / "1" / ".model.pt";
  int failed = 0;
  ended_ahead_ = [&] {
    std::filesystem::rename(hidden, file);
    ++failed;
  };
  gate_.Shut();
  EXPECT_TRUE(LoadAhead(copy));
  EXPECT_TRUE(gate_.AwaitLoads(1));
  std::filesystem::rename(file, hidden);
  gate_.Open();
  const absl::Status applied = Apply(copy);
  EXPECT_EQ(failed, 1);
  EXPECT_TRUE(applied.ok()) << applied;
  EXPECT_TRUE(table_.FindReady("copy", 0).ok());
}

TEST_F(ModelHostTest, NothingIsLoadedAheadWhileTheDaemonEnds) {
  Start(0);
  closed_ = true;
  EXPECT_FALSE(LoadAhead(Write("a", 20)));
  EXPECT_THAT(host_->AheadOf("a"), IsEmpty());
}

TEST_F(ModelHostTest, AVersionIsReplacedByOneWithTheThreadsThatAreBetter) {
  Start(0);
  const Files files = Read("first");
  auto before = table_.FindReady("first", 0);
  ASSERT_TRUE(before.ok());
  ModelHost::ThreadTrial trial = Measured();
  EXPECT_FALSE(host_->TryThreads(files.stamp, &trial)) << "nothing is left to be done";
  EXPECT_EQ(Trials("changed"), 1);
  const auto after = table_.FindReady("first", 0);
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_NE(*after, *before);
  EXPECT_TRUE((*before)->CheckReady().ok()) << "requests that have found it go on";
  EXPECT_EQ((*after)->Timing()->threads, 1);
  EXPECT_EQ((*after)->Timing()->instances, 2);
  EXPECT_EQ(host_->MemoryHosted(), 20 * kMiB);
  EXPECT_EQ(host_->MemoryLeaving(), 20 * kMiB);
  EXPECT_EQ(host_->MemoryInUse(), 40 * kMiB) << "two copies are in memory";
  EXPECT_FALSE(host_->FreeUnused());
  before->reset();
  EXPECT_TRUE(host_->FreeUnused());
  EXPECT_EQ(host_->MemoryInUse(), 20 * kMiB);
  ASSERT_TRUE(Apply(files).ok());
  EXPECT_EQ(*table_.FindReady("first", 0), *after) << "the files are those that it was loaded from";
}

TEST_F(ModelHostTest, AVersionThatWasLoadedAgainSinceItsTrialIsLeftAsItIs) {
  Start(0);
  ModelHost::ThreadTrial trial = Measured();
  const Files files = Read("first");
  ASSERT_TRUE(host_->Apply(files.entry, files.stamp, /*all_anew=*/true, {}).ok());
  const auto serving = table_.FindReady("first", 0);
  ASSERT_TRUE(serving.ok());
  EXPECT_FALSE(host_->TryThreads(files.stamp, &trial));
  EXPECT_EQ(Trials("failed"), 1);
  EXPECT_EQ(*table_.FindReady("first", 0), *serving);
}

TEST_F(ModelHostTest, WhatHasNoRoomOrOtherFilesIsNotTried) {
  Start(59);
  const Files files = Read("first");
  ASSERT_EQ(host_->ThreadTrials().size(), 1u);
  ModelHost::ThreadTrial trial = host_->ThreadTrials().front();
  EXPECT_EQ(trial.model, "first");
  EXPECT_EQ(trial.version, 1);
  EXPECT_FALSE(host_->TryThreads(files.stamp, &trial)) << "20 MiB are held, and another load needs 40";
  options_.max_model_bytes = 0;
  const Files changed = Write("first", 21);
  EXPECT_FALSE(host_->TryThreads(changed.stamp, &trial));
  ModelHost::ThreadTrial unknown = {"other", 1};
  EXPECT_FALSE(host_->TryThreads(files.stamp, &unknown));
  for (const char* result : {"kept", "changed", "failed"}) EXPECT_EQ(Trials(result), 0) << result;
  // The clock stands still, so that all numbers are equally good, and the first one is kept.
  EXPECT_FALSE(host_->TryThreads(files.stamp, &trial));
  EXPECT_EQ(Trials("kept"), 1);
}

TEST_F(ModelHostTest, CoresOfPinnedInstancesAreGivenBackWithTheirModel) {
  Start(0);
  const auto pinned = [](int threads) {
    return absl::StrCat("parameters { key: \"pin\" value { string_value: \"true\" } }\n",
                        "parameters { key: \"threads\" value { string_value: \"", threads, "\" } }\n");
  };
  const auto first_core = [&](const std::string& model) {
    const auto serving = table_.FindReady(model, 0);
    EXPECT_TRUE(serving.ok()) << serving.status();
    return serving.ok() ? (*serving)->pinned_to()->first : -1;
  };
  for (const char* model : {"a", "b"}) ASSERT_TRUE(Apply(Write(model, 1, pinned(1))).ok());
  EXPECT_EQ(first_core("a"), 0);
  const int of_b = first_core("b");
  ASSERT_TRUE(Apply(Write("b", 2, pinned(1))).ok());
  EXPECT_EQ(first_core("b"), of_b) << "it takes the place of the version that it replaces";
  host_->Dismiss("a", std::nullopt, absl::InfiniteFuture(), [](const absl::Status&) {});
  host_->FreeUnused();
  ASSERT_TRUE(Apply(Write("c", 1, pinned(1))).ok());
  EXPECT_EQ(first_core("c"), 0);
  EXPECT_EQ((*table_.FindReady("first", 0))->pinned_to(), nullptr);
}

}  // namespace
}  // namespace saccade::server
