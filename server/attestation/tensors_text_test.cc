#include "server/attestation/tensors_text.h"

#include <gtest/gtest.h>

#include "server/core/sha256.h"

namespace saccade::server {
namespace {

// SHA-256 of "abc".
constexpr char kAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

TEST(TensorsTextTest, RequestsHaveNoBytes) {
  const std::vector<Tensor> inputs = {{.name = "image", .type = DataType::kBytes, .shape = {1}, .data = {}}};
  EXPECT_EQ(RequestText(inputs, {}),
            R"({"inputs":[{"name":"image","datatype":"BYTES","shape":[1]}],"outputs":[]})");
  EXPECT_EQ(RequestText({}, {{.name = "b\u00f6xes", .classes = 3}}),
            R"({"inputs":[],"outputs":[{"name":"b\u00f6xes","classes":3}]})");
}

TEST(TensorsTextTest, AnswersHaveTheDigestOfTheirBytes) {
  BytePieces pieces("a");
  pieces.Add("bc");
  const std::vector<Tensor> outputs = {
      {.name = "labels", .type = DataType::kUint8, .shape = {1, 3}, .data = pieces}};
  EXPECT_EQ(AnswerText(outputs),
            std::string(R"([{"name":"labels","datatype":"UINT8","shape":[1,3],"sha256":")") + kAbc + "\"}]");
  EXPECT_EQ(Sha256Hex("abc"), kAbc);
}

}  // namespace
}  // namespace saccade::server
