#include "server/repository/stamps.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/settling.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class StampsTest : public testing::Test {
 protected:
  StampsTest() {
    repository_.Write("m/config.pbtxt", "a");
    repository_.Write("m/1/weights.pt", "w");
  }
  ModelStamp Stamp() const {
    const auto stamp = StampModel(repository_.string(), "m");
    EXPECT_TRUE(stamp.ok()) << stamp.status();
    return stamp.ok() ? *stamp : ModelStamp();
  }

  TestRepository repository_;
};

TEST_F(StampsTest, UntouchedFilesLookTheSame) { EXPECT_EQ(Stamp(), Stamp()); }

TEST_F(StampsTest, AVersionAndWhatAllShareAreToldApart) {
  const ModelStamp before = Stamp();
  repository_.Write("m/1/weights.pt", "longer");
  const ModelStamp longer = Stamp();
  EXPECT_EQ(longer.shared, before.shared);
  EXPECT_NE(longer.versions, before.versions);
  for (const char* file : {"config.pbtxt", "labels.txt", "warmup/cat.jpg"}) {
    const ModelStamp earlier = Stamp();
    repository_.Write(std::string("m/") + file, "something else");
    EXPECT_NE(Stamp().shared, earlier.shared) << file;
    EXPECT_EQ(Stamp().versions, earlier.versions) << file;
  }
  repository_.Write("m/2/weights.pt", "w");
  EXPECT_EQ(Stamp().versions.size(), 2u);
}

TEST_F(StampsTest, AFileOfTheSameSizeInItsPlaceIsSeen) {
  const ModelStamp before = Stamp();
  repository_.Write("m/other", "w");
  std::filesystem::last_write_time(repository_.path() / "m" / "other",
                                   std::filesystem::last_write_time(repository_.path() / "m/1/weights.pt"));
  std::filesystem::rename(repository_.path() / "m" / "other", repository_.path() / "m/1/weights.pt");
  EXPECT_NE(Stamp(), before);
}

TEST_F(StampsTest, WhatIsNamedForLaterIsNotSeen) {
  const ModelStamp before = Stamp();
  repository_.Write("m/2.tmp/weights.pt", "w");
  repository_.Write("m/.2/weights.pt", "w");
  repository_.Write("m/notes/readme", "w");
  EXPECT_EQ(Stamp(), before);
}

TEST_F(StampsTest, NamesAreChecked) {
  EXPECT_EQ(StampModel(repository_.string(), "../m").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(StampModel(repository_.string(), "n").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(StampsTest, FoldersAreListed) {
  repository_.Write("README", "");
  repository_.Write(".hidden/config.pbtxt", "");
  repository_.Write("lost+found/x", "");
  const auto names = ListModels(repository_.string());
  ASSERT_TRUE(names.ok());
  EXPECT_THAT(*names, ElementsAre("m"));
}

ModelStamp Looks(const std::string& like) { return {.shared = like, .versions = {}}; }

TEST(SettlingTest, AChangeCountsWhenItIsSeenTwice) {
  Settling settling;
  settling.Applied("m", Looks("a"));
  EXPECT_THAT(settling.Look({{"m", Looks("a")}}), IsEmpty());
  EXPECT_THAT(settling.Look({{"m", Looks("b")}}), IsEmpty());
  EXPECT_THAT(settling.Look({{"m", Looks("b")}}), ElementsAre("m"));
  settling.Applied("m", Looks("b"));
  EXPECT_THAT(settling.Look({{"m", Looks("b")}}), IsEmpty());
}

TEST(SettlingTest, WhatIsBeingWrittenIsLeftAlone) {
  Settling settling;
  for (const char* size : {"1", "2", "3", "4"}) EXPECT_THAT(settling.Look({{"m", Looks(size)}}), IsEmpty());
  EXPECT_THAT(settling.Look({{"m", Looks("4")}}), ElementsAre("m"));
}

TEST(SettlingTest, AChangeThatIsTakenBackIsNone) {
  Settling settling;
  settling.Applied("m", Looks("a"));
  EXPECT_THAT(settling.Look({{"m", Looks("b")}}), IsEmpty());
  EXPECT_THAT(settling.Look({{"m", Looks("a")}}), IsEmpty());
  EXPECT_THAT(settling.Look({{"m", Looks("b")}}), IsEmpty()) << "it begins anew";
}

TEST(SettlingTest, AModelIsGoneWhenItIsMissedTwice) {
  Settling settling;
  settling.Applied("m", Looks("a"));
  settling.Applied("n", Looks("a"));
  EXPECT_THAT(settling.Look({{"n", Looks("a")}}), IsEmpty());
  EXPECT_THAT(settling.Look({{"n", Looks("a")}}), ElementsAre("m"));
  settling.Forget("m");
  EXPECT_THAT(settling.Look({{"n", Looks("a")}}), IsEmpty());
}

}  // namespace
}  // namespace saccade::server
