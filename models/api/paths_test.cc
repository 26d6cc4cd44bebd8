#include "models/api/paths.h"

#include <gtest/gtest.h>

namespace saccade::models {
namespace {

TEST(PathsTest, InsideIsBelowWholeNames) {
  EXPECT_TRUE(IsInside("/a/b", "/a/b"));
  EXPECT_TRUE(IsInside("/a/b/c/d", "/a/b"));
  EXPECT_TRUE(IsInside("/a", "/"));
  EXPECT_FALSE(IsInside("/a/bc", "/a/b"));
  EXPECT_FALSE(IsInside("/a", "/a/b"));
  EXPECT_FALSE(IsInside("/x/b/c", "/a/b"));
}

}  // namespace
}  // namespace saccade::models
