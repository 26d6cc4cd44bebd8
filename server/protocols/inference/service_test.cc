// Which requests are read on the pool, so that those of other clients need not wait for them.
#include "server/protocols/inference/service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "server/net/work_pool.h"
#include "server/protocols/testing/fake_call.h"
#include "server/protocols/testing/model_pipeline.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr size_t kLarge = 300'000;
// What a request gets that should run on the pool, which has no room.
constexpr char kNoRoom[] = "too many large messages wait";

class InferenceServiceTest : public testing::ModelPipelineTest {
 protected:
  std::shared_ptr<CallHandler> HandlerOf(const char* method) {
    for (const CallMethod& one : service_.Methods()) {
      if (one.path == InferencePath(method)) return one.make();
    }
    ADD_FAILURE() << "no method " << method;
    return nullptr;
  }

  // The errors of a request for a model that does not exist, alone and on a stream.
  std::string ErrorsOf(const inference::ModelInferRequest& request) {
    testing::FakeCall unary;
    unary.Begin(HandlerOf("ModelInfer"));
    unary.Deliver(request);
    unary.HalfClose();
    std::string errors(unary.end().status.message());
    unary.Done();

    testing::FakeCall stream;
    stream.Begin(HandlerOf("ModelStreamInfer"));
    stream.Deliver(request);
    inference::ModelStreamInferResponse response;
    EXPECT_TRUE(response.ParseFromString(stream.Written()));
    stream.HalfClose();
    stream.Done();
    EXPECT_EQ(response.error_message(), errors);
    return errors;
  }

  static inference::ModelInferRequest RequestOf(const std::string& type) {
    inference::ModelInferRequest request;
    request.set_model_name("unknown");
    auto* input = request.add_inputs();
    input->set_name("image");
    input->set_datatype(type);
    input->add_shape(kLarge / 4);
    return request;
  }

  WorkPool full_{0, 0};
  SharedMemory shared_memory_{{.allowed = true, .folder = ::testing::TempDir()}};
  Inference inference_{&pipeline_, &catalog_, &shared_memory_, StatusCodes()};
  InferenceService service_{{.server_name = "",
                             .server_version = "",
                             .max_message_bytes = 1 << 20,
                             .pool = &full_,
                             .ready = nullptr},
                            {.inference = &inference_,
                             .pipeline = &pipeline_,
                             .catalog = &catalog_,
                             .shared_memory = &shared_memory_,
                             .clock = Clock::Real()}};
};

TEST_F(InferenceServiceTest, LargeTensorsOfBytesAreSplitOnThePool) {
  inference::ModelInferRequest numbers = RequestOf("FP32");
  numbers.add_raw_input_contents(std::string(kLarge, '\0'));
  EXPECT_THAT(ErrorsOf(numbers), Not(HasSubstr(kNoRoom)));
  inference::ModelInferRequest elements = RequestOf("BYTES");
  // Each element is empty.
  elements.add_raw_input_contents(std::string(kLarge, '\0'));
  EXPECT_THAT(ErrorsOf(elements), HasSubstr(kNoRoom));
}

TEST_F(InferenceServiceTest, TensorsInSharedMemoryAreCopiedOnThePool) {
  inference::ModelInferRequest request = RequestOf("FP32");
  EXPECT_THAT(ErrorsOf(request), Not(HasSubstr(kNoRoom)));
  (*request.mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param("r");
  EXPECT_THAT(ErrorsOf(request), HasSubstr(kNoRoom));
}

// An answer from the cache is written by the thread that reads the request.
TEST_F(InferenceServiceTest, RequestsWithOutputsInSharedMemoryAreReadOnThePool) {
  inference::ModelInferRequest request = RequestOf("FP32");
  auto& parameters = *request.add_outputs()->mutable_parameters();
  EXPECT_THAT(ErrorsOf(request), Not(HasSubstr(kNoRoom)));
  parameters["shared_memory_region"].set_string_param("r");
  EXPECT_THAT(ErrorsOf(request), HasSubstr(kNoRoom));
}

}  // namespace
}  // namespace saccade::server
