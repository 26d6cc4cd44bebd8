#include "server/protocols/inference/answer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/core/request.h"
#include "server/grpc/testing/pieces.h"

namespace saccade::server {
namespace {

std::shared_ptr<const Response> Restored(size_t values) {
  auto response = std::make_shared<Response>();
  response->results = {models::Restoration{.values = std::vector<float>(values, 0.5F)}};
  return response;
}

const std::vector<float>& Values(const Response& response) {
  return std::get<models::Restoration>(response.results[0]).values;
}

InferenceAnswer AnswerOf(std::shared_ptr<const Response> response) {
  InferenceAnswer answer;
  answer.fields.set_id("an id");
  const std::vector<float>& values = Values(*response);
  const std::string_view bytes(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  answer.raws = {BytePieces(bytes, std::move(response)), BytePieces(std::string_view("small")), {}};
  return answer;
}

TEST(InferenceAnswer, IsTheMessageThatProtobufWouldWrite) {
  for (const size_t values : {0, 1, 31, 1023, 1024, 100000}) {
    const auto response = Restored(values);
    inference::ModelInferResponse expected;
    expected.set_id("an id");
    expected.add_raw_output_contents(Values(*response).data(), 4 * values);
    expected.add_raw_output_contents("small");
    expected.add_raw_output_contents("");
    EXPECT_EQ(SizeOf(AnswerOf(response)), expected.ByteSizeLong());
    EXPECT_EQ(testing::Joined(ToBytes(AnswerOf(response))), expected.SerializeAsString()) << values;
    inference::ModelStreamInferResponse streamed;
    *streamed.mutable_infer_response() = expected;
    EXPECT_EQ(testing::Joined(ToStreamBytes(AnswerOf(response))), streamed.SerializeAsString()) << values;
  }
}

TEST(InferenceAnswer, ReferredToUntilItIsSent) {
  auto response = Restored(100000);
  const std::weak_ptr<const Response> alive = response;
  const void* const values = Values(*response).data();
  {
    const BytePieces bytes = ToBytes(AnswerOf(std::move(response)));
    ASSERT_EQ(bytes.pieces().size(), 3u);
    EXPECT_EQ(static_cast<const void*>(bytes.pieces()[1].data()), values);
    EXPECT_EQ(bytes.pieces()[1].size(), 400000u);
    EXPECT_FALSE(alive.expired());
  }
  EXPECT_TRUE(alive.expired());
}

}  // namespace
}  // namespace saccade::server
