#include "models/graphs/graph_ports.h"

#include <functional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "models/api/error.h"

namespace saccade::models {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Refusal(const std::function<void()>& call) {
  try {
    call();
  } catch (const LoadError& error) {
    return error.what();
  }
  return "";
}

// The names of the only input of the graph that PretendedApi() describes.
const char* names_of_input = "";

// What a graph with one input and no output says of itself.
GraphApi PretendedApi() {
  GraphApi api{};
  api.inputs = [](const SaccadeGraph*) { return 1; };
  api.outputs = [](const SaccadeGraph*) { return 0; };
  api.input = [](const SaccadeGraph*, int32_t) {
    return GraphPort{.names = names_of_input, .type = kOtherType, .rank = -1, .dims = nullptr};
  };
  return api;
}

Ports Named(const char* names) {
  names_of_input = names;
  return ReadPorts(PretendedApi(), nullptr);
}

TEST(GraphPortsTest, NamesAreUtf8AndNotEmpty) {
  EXPECT_THAT(Named("x\nx:0\n").inputs.at(0).names, ElementsAre("x", "x:0"));
  EXPECT_THAT(Named("\xC3\xA9\n").inputs.at(0).names, ElementsAre("\xC3\xA9"));
  EXPECT_THAT(Refusal([] { Named(""); }), HasSubstr("has no name"));
  EXPECT_THAT(Refusal([] { Named("x\n\n"); }), HasSubstr("is named '', expected a name of UTF-8"));
  EXPECT_THAT(Refusal([] { Named("x\xFF\n"); }), HasSubstr("is named 'x\\xff', expected a name of UTF-8"));
}

TEST(GraphPortsTest, ErrorsQuoteNames) {
  const Ports ports = {
      .inputs = {{.names = {"x\n\xC3\xA9"}, .type = static_cast<int32_t>(DataType::kFp32), .dims = {1, 4}}},
      .outputs = {}};
  const Signature signature = {
      .inputs = {{.name = "x", .dims = {4}}}, .outputs = {}, .batched = true, .max_batch = 8};
  EXPECT_THAT(Refusal([&] { MatchPorts(ports, signature); }),
              HasSubstr("input 'x\\x0a\\xc3\\xa9' of the graph is FP32 [1,4], whose first size is fixed"));
}

TEST(GraphPortsTest, OneRowNeedsAFirstSizeOfOneOrAnOpenOne) {
  const auto why_not = [](int64_t first, int64_t max_batch) {
    const Ports ports = {
        .inputs = {{.names = {"x"}, .type = static_cast<int32_t>(DataType::kFp32), .dims = {first, 3}}},
        .outputs = {}};
    const Signature signature = {
        .inputs = {{.name = "x", .dims = {3}}}, .outputs = {}, .batched = true, .max_batch = max_batch};
    return Refusal([&] { MatchPorts(ports, signature); });
  };
  EXPECT_EQ(why_not(1, 1), "");
  EXPECT_EQ(why_not(-1, 1), "");
  EXPECT_EQ(why_not(-1, 8), "");
  EXPECT_THAT(why_not(4, 1), HasSubstr("input 'x' of the graph is FP32 [4,3], whose first size is fixed, but "
                                       "with max_batch_size 1 it has to be 1 or open"));
  EXPECT_THAT(why_not(4, 8), HasSubstr("but batches need it open"));
}

}  // namespace
}  // namespace saccade::models
