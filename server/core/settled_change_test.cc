#include "server/core/settled_change.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace saccade::server {
namespace {

TEST(SettledChangeTest, AChangeCountsWhenTwoLooksFindIt) {
  SettledChange<std::string> change("a");
  EXPECT_FALSE(change.Look("a"));
  EXPECT_FALSE(change.Look("b"));
  EXPECT_TRUE(change.Look("b"));
  EXPECT_TRUE(change.Look("b")) << "is not used yet";
  change.UseFound();
  EXPECT_EQ(change.in_use(), "b");
  EXPECT_FALSE(change.Look("b"));
}

TEST(SettledChangeTest, AStateThatDiffersEachTimeIsStillBeingWritten) {
  SettledChange<std::string> change("");
  for (const char* size : {"1", "2", "3", "4"}) EXPECT_FALSE(change.Look(size));
  EXPECT_TRUE(change.Look("4"));
}

TEST(SettledChangeTest, AChangeThatIsTakenBackIsNone) {
  SettledChange<std::string> change("a");
  EXPECT_FALSE(change.Look("b"));
  EXPECT_FALSE(change.Look("a"));
  EXPECT_FALSE(change.Look("b"));
  EXPECT_TRUE(change.Look("b"));
}

TEST(SettledChangeTest, NothingIsUsedBeforeTheFirstLook) {
  SettledChange<std::string> change("a");
  change.UseFound();
  EXPECT_EQ(change.in_use(), "a");
  change.Use("b");
  EXPECT_FALSE(change.Look("b"));
  EXPECT_FALSE(change.Look("a"));
  EXPECT_TRUE(change.Look("a"));
}

TEST(SettledChangeTest, AStateMayBeAnAbsence) {
  SettledChange<std::optional<std::string>> change("a");
  EXPECT_FALSE(change.Look(std::nullopt));
  EXPECT_TRUE(change.Look(std::nullopt));
  EXPECT_FALSE(change.Look("a"));
}

}  // namespace
}  // namespace saccade::server
