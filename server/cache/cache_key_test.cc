#include "server/cache/cache_key.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace saccade::server {
namespace {

constexpr std::string_view kBytes = "0123456789abcdef";

TensorCall Call() {
  TensorCall call;
  call.model = std::string("m");
  call.inputs.push_back({.name = "a", .type = DataType::kInt32, .shape = {2, 2}, .data = BytePieces(kBytes)});
  call.outputs.push_back({.name = "out", .classes = 3});
  return call;
}

TEST(CacheKeyTest, EveryPartOfTheAnswersCauseIsInIt) {
  const std::vector<std::function<void(TensorCall&)>> changes = {
      [](TensorCall& call) { call.inputs[0].name = std::string("b"); },
      [](TensorCall& call) { call.inputs[0].type = DataType::kUint32; },
      [](TensorCall& call) { call.inputs[0].shape = {4, 1}; },
      [](TensorCall& call) { call.inputs[0].shape = {2, 2, 1}; },
      [](TensorCall& call) { call.inputs[0].data = BytePieces("0123456789abcdeF"); },
      [](TensorCall& call) { call.inputs[0].data = BytePieces("0123456789abcde"); },
      [](TensorCall& call) { call.inputs.push_back(call.inputs[0]); },
      [](TensorCall& call) { call.inputs.clear(); },
  };
  std::set<CacheKey> keys = {CacheKeyOf(Call())};
  for (size_t i = 0; i < changes.size(); ++i) {
    TensorCall call = Call();
    changes[i](call);
    EXPECT_TRUE(keys.insert(CacheKeyOf(call)).second) << "change " << i;
  }
}

TEST(CacheKeyTest, WhereNamesAndBytesEndIsInIt) {
  TensorCall first;
  const auto named = [](const char* name) {
    return Tensor{.name = name, .type = DataType::kInt8, .shape = {}, .data = {}};
  };
  first.inputs = {named("ab"), named("c")};
  TensorCall second;
  second.inputs = {named("a"), named("bc")};
  EXPECT_NE(CacheKeyOf(first), CacheKeyOf(second));
}

TEST(CacheKeyTest, TheRequestedOutputsAreNot) {
  TensorCall call = Call();
  call.outputs = {{.name = "other"}, {.name = "out", .classes = 5}};
  EXPECT_EQ(CacheKeyOf(call), CacheKeyOf(Call()));
}

TEST(CacheKeyTest, WhoAsksAndHowIsNot) {
  TensorCall call = Call();
  call.id = std::string("7");
  call.client = std::string("somebody");
  call.priority = -2;
  call.arrival = absl::Now();
  call.deadline = absl::Now();
  call.timeout = absl::Seconds(1);
  call.protocol = "http";
  EXPECT_EQ(CacheKeyOf(call), CacheKeyOf(Call()));
}

TEST(CacheKeyTest, InPiecesTheBytesAreTheSame) {
  TensorCall call = Call();
  call.inputs[0].data = {};
  for (size_t at = 0; at < kBytes.size(); at += 5) call.inputs[0].data.Add(kBytes.substr(at, 5));
  EXPECT_EQ(CacheKeyOf(call), CacheKeyOf(Call()));
}

}  // namespace
}  // namespace saccade::server
