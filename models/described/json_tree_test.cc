#include "models/described/json_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/api/error.h"
#include "models/testing/thread_seconds.h"

namespace saccade::models {
namespace {

using ::testing::HasSubstr;
using testing::ThreadSeconds;

// Returns the message of the LoadError; empty if there is none.
std::string ErrorOf(const std::string& json) {
  try {
    ParseJsonTree(json);
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

TEST(JsonTree, NamesAreUsedOnceInEachObject) {
  EXPECT_EQ(ErrorOf(R"({"a": {"a": 1, "b": 2}, "b": {"a": 3}})"), "");
  EXPECT_THAT(ErrorOf(R"({"a": 1, "b": 2, "a": 3})"), HasSubstr("the name 'a' is used twice"));
  EXPECT_THAT(ErrorOf(R"({"a": [{"b": 1, "b": 1}]})"), HasSubstr("the name 'b' is used twice"));
}

TEST(JsonTree, AnObjectTakesLittleMoreTimeThanAList) {
  constexpr size_t kCount = 100'000;
  std::string list = "[";
  std::string object = "{";
  for (size_t i = 0; i < kCount; ++i) {
    const std::string name = '"' + std::to_string(i) + '"';
    list += (i == 0 ? "" : ",") + name;
    object += (i == 0 ? "" : ",") + name + ":" + name;
  }
  list += "]";
  object += "}";
  size_t items = 0;
  size_t members = 0;
  const double of_list = ThreadSeconds([&] { items = ParseJsonTree(list).items.size(); });
  const double of_object = ThreadSeconds([&] { members = ParseJsonTree(object).members.size(); });
  EXPECT_EQ(items, kCount);
  EXPECT_EQ(members, kCount);
  // Comparing each name with each other one takes about a thousand times as long.
  EXPECT_LT(of_object, 100 * of_list);
}

}  // namespace
}  // namespace saccade::models
