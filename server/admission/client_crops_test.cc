#include "server/admission/client_crops.h"

#include <memory>
#include <vector>

#include "gtest/gtest.h"

namespace saccade::server {
namespace {

// Starts crops until there is no room, and returns their number.
int StartAll(ClientCrops::Share& share) {
  int started = 0;
  while (share.HasRoom()) {
    EXPECT_TRUE(share.Start());
    ++started;
  }
  EXPECT_FALSE(share.Start());
  return started;
}

TEST(ClientCropsTest, ARequestAloneHasAllCropsOfItsClient) {
  ClientCrops crops;
  ClientCrops::Share share(&crops, "a");
  EXPECT_EQ(StartAll(share), kMaxCropsAtOnce);
  share.End();
  EXPECT_TRUE(share.Start());
  EXPECT_FALSE(share.Start());
}

TEST(ClientCropsTest, RequestsOfAClientShareItsCrops) {
  ClientCrops crops;
  ClientCrops::Share first(&crops, "a");
  ClientCrops::Share second(&crops, "a");
  EXPECT_EQ(StartAll(first), kMaxCropsAtOnce / 2);
  EXPECT_EQ(StartAll(second), kMaxCropsAtOnce / 2);
  ClientCrops::Share other(&crops, "b");
  EXPECT_EQ(StartAll(other), kMaxCropsAtOnce);
}

TEST(ClientCropsTest, AnEarlierRequestLeavesItsCropsToALaterOne) {
  ClientCrops crops;
  ClientCrops::Share first(&crops, "a");
  EXPECT_EQ(StartAll(first), kMaxCropsAtOnce);
  ClientCrops::Share second(&crops, "a");
  EXPECT_EQ(StartAll(second), 1) << "at least one of each request";
  // The first has 32, one more than the client may have beside the second.
  for (int i = 0; i < kMaxCropsAtOnce / 2; ++i) {
    first.End();
    EXPECT_FALSE(first.Start());
  }
  EXPECT_EQ(StartAll(second), kMaxCropsAtOnce / 2 - 1);
}

TEST(ClientCropsTest, EachRequestHasOneCropHoweverManyThereAre) {
  ClientCrops crops;
  std::vector<std::unique_ptr<ClientCrops::Share>> shares;
  for (int i = 0; i < 3 * kMaxCropsAtOnce; ++i)
    shares.push_back(std::make_unique<ClientCrops::Share>(&crops, "a"));
  for (const auto& share : shares) EXPECT_EQ(StartAll(*share), 1);
  for (const auto& share : shares) share->End();
  shares.resize(1);
  EXPECT_EQ(StartAll(*shares.front()), kMaxCropsAtOnce) << "requests that have ended do not count";
}

}  // namespace
}  // namespace saccade::server
