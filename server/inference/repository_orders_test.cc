#include "server/inference/repository_orders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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

TEST(RepositoryOrders, AnUnloadMayTakeWhatDepends) {
  EXPECT_FALSE(*UnloadsDependents({}));
  EXPECT_TRUE(*UnloadsDependents({{"unload_dependents", true}}));
  EXPECT_EQ(UnloadsDependents({{"unload_dependents", "true"sv}}).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(UnloadsDependents({{"config", "{}"sv}}).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace saccade::server
