// Counts every copy of a raw tensor on its way from request to response. The model is the identity, which
// copies each value once itself.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/blocking_counter.h"
#include "server/grpc/testing/pieces.h"
#include "server/protocols/inference/messages.h"
#include "server/protocols/testing/counted_copies.h"
#include "server/protocols/testing/model_pipeline.h"

namespace saccade::server {
namespace {

constexpr size_t kFloats = 64 * 1024;
constexpr size_t kBytes = kFloats * sizeof(float);
// A size of pieces of a large message.
constexpr size_t kPiece = 16 * 1024;

// The last piece of a request may be too small to be counted.
constexpr size_t kUncounted = testing::kCountedFrom;

class TensorCopies : public testing::ModelPipelineTest {
 protected:
  TensorCopies() : ModelPipelineTest({}, CheckSteps) {}

  void SetUp() override {
    // A full batch is computed at once, without waiting for the delay.
    WriteIdentity(/*max_batch_size=*/4, "dynamic_batching { max_queue_delay_microseconds: 1000000 }");
    // The same input for two steps, whose results are the answer.
    repository_.Write("both/config.pbtxt", R"(
      platform: "ensemble" max_batch_size: 4
      input { name: "image" data_type: TYPE_FP32 dims: [ 1, 1, 64, 1024 ] }
      output [ { name: "a" data_type: TYPE_FP32 dims: [ 1, 64, 1024 ] },
               { name: "b" data_type: TYPE_FP32 dims: [ 1, 64, 1024 ] } ]
      ensemble_scheduling { step [
        { model_name: "identity" model_version: -1
          input_map { key: "image" value: "image" } output_map { key: "restored" value: "a" } },
        { model_name: "identity" model_version: -1
          input_map { key: "image" value: "image" } output_map { key: "restored" value: "b" } } ] })");
    LoadModels();
  }

  // A request for `items` volumes as the network delivers it.
  static BytePieces Sent(int64_t items, size_t piece, const char* model = "identity") {
    inference::ModelInferRequest message;
    message.set_model_name(model);
    auto* input = message.add_inputs();
    input->set_name("image");
    input->set_datatype("FP32");
    for (const int64_t extent : {items, int64_t{1}, int64_t{1}, int64_t{64}, int64_t{1024}}) {
      input->add_shape(extent);
    }
    std::vector<float> values(items * kFloats);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
    message.add_raw_input_contents(values.data(), values.size() * sizeof(float));
    return testing::InPieces(message, piece);
  }

  // The bytes copied between receiving and sending for concurrent calls, each of which is answered with its
  // input.
  size_t CopiedBy(const std::vector<BytePieces>& sent) {
    std::vector<InferenceRequest> received(sent.size());
    std::vector<BytePieces> answers(sent.size());
    absl::BlockingCounter running(static_cast<int>(sent.size()));
    const size_t before = testing::CopiedBytes();
    for (size_t i = 0; i < sent.size(); ++i) {
      EXPECT_TRUE(ReadInferenceRequest(sent[i], received[i]).ok());
      const auto version_of = [this](absl::string_view model, absl::string_view version) {
        return inference_.VersionOf(model, version);
      };
      inference_.Infer(
          *FromMessage(received[i], shared_memory_, version_of, absl::Now(), absl::InfiniteFuture()),
          [&, i](absl::StatusOr<TensorAnswer> answer) {
            answers[i] = ToBytes(ToAnswer(*std::move(answer), "id"));
            running.DecrementCount();
          });
    }
    running.Wait();
    const size_t copied = testing::CopiedBytes() - before;
    for (size_t i = 0; i < sent.size(); ++i) {
      inference::ModelInferRequest request;
      inference::ModelInferResponse response;
      EXPECT_TRUE(request.ParseFromString(testing::Joined(sent[i])));
      EXPECT_TRUE(response.ParseFromString(testing::Joined(answers[i])));
      EXPECT_GT(response.raw_output_contents_size(), 0);
      for (const std::string& output : response.raw_output_contents())
        EXPECT_EQ(output, request.raw_input_contents(0));
    }
    return copied;
  }

  SharedMemory shared_memory_{{}};
  Inference inference_{&pipeline_, &catalog_, &shared_memory_, StatusCodes()};
};

TEST_F(TensorCopies, TheCounterCounts) {
  const std::string from(testing::kCountedFrom, 'x');
  std::string to(from.size(), ' ');
  const size_t before = testing::CopiedBytes();
  std::memcpy(to.data(), from.data(), from.size());
  EXPECT_EQ(testing::CopiedBytes() - before, from.size());
  EXPECT_EQ(to, from);
}

TEST_F(TensorCopies, InPiecesOnceIntoTheBatch) {
  // And once by the identity.
  EXPECT_NEAR(CopiedBy({Sent(4, kPiece)}), 2 * 4 * kBytes, kUncounted);
}

TEST_F(TensorCopies, OfSeveralCallsOnceIntoTheirBatch) {
  EXPECT_NEAR(CopiedBy({Sent(1, kPiece), Sent(2, kPiece), Sent(1, kPiece)}), 2 * 4 * kBytes, 3 * kUncounted);
}

TEST_F(TensorCopies, AnEnsembleAddsNoneToThoseOfItsSteps) {
  EXPECT_NEAR(CopiedBy({Sent(4, kPiece, "both")}), 2 * 2 * 4 * kBytes, 2 * kUncounted);
}

TEST_F(TensorCopies, WholeAndAlignedNotAtAll) {
  // The model's name precedes the values; one of four lengths aligns them.
  size_t uncopied = 0;
  for (const char* padding : {"", "x", "xx", "xxx"}) {
    const std::string message = testing::Joined(Sent(4, kPiece));
    // The request's id is field 3.
    const std::string id = std::string("\x1a") + static_cast<char>(std::strlen(padding)) + padding;
    const size_t copied = CopiedBy({testing::InPieces(id + message, 1 << 30)});
    EXPECT_TRUE(copied == 4 * kBytes || copied == 2 * 4 * kBytes) << copied;
    if (copied == 4 * kBytes) ++uncopied;
  }
  EXPECT_EQ(uncopied, 1u);
}

}  // namespace
}  // namespace saccade::server
