#include "server/inference/repository_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace saccade::server {
namespace {

using std::string_view_literals::operator""sv;

TEST(RepositoryOrders, ALoadMayBringAConfiguration) {
  EXPECT_EQ(*LoadConfigOf({}), std::nullopt);
  EXPECT_EQ(*LoadConfigOf({{"config", "{}"sv}}), "{}");
  for (const Parameter& wrong : {Parameter(true), Parameter(uint64_t{1}), Parameter(""sv)}) {
    EXPECT_EQ(LoadConfigOf({{"config", wrong}}).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(LoadConfigOf({{"file:1/model.pt", "x"sv}}).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(LoadConfigOf({{"colour", "x"sv}}).status().message()),
              ::testing::HasSubstr("'colour': is unknown; expected config"));
}

TEST(RepositoryOrders, AConfigurationIsBounded) {
  const std::string longest(1 << 20, ' ');
  EXPECT_TRUE(LoadConfigOf({{"config", std::string_view(longest)}}).ok());
  const std::string longer = longest + " ";
  EXPECT_THAT(std::string(LoadConfigOf({{"config", std::string_view(longer)}}).status().message()),
              ::testing::HasSubstr("parameter config: has 1048577 bytes, more than the 1048576"));
  std::string many = "{\"input\":[{}";
  for (int i = 0; i < 70'000; ++i) many += ",{}";
  EXPECT_THAT(std::string(LoadConfigOf({{"config", std::string_view(many)}}).status().message()),
              ::testing::HasSubstr("more than the 65536 that are allowed"));
}

TEST(RepositoryOrders, AnUnloadMayTakeWhatDepends) {
  EXPECT_FALSE(*UnloadsDependents({}));
  EXPECT_TRUE(*UnloadsDependents({{"unload_dependents", true}}));
  EXPECT_EQ(UnloadsDependents({{"unload_dependents", "true"sv}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(UnloadsDependents({{"config", "{}"sv}}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace saccade::server
