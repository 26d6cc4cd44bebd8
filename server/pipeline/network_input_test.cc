#include "server/pipeline/network_input.h"

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/fake_clock.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// Pictures as they are, whole, padded to multiples of 4.
models::ImageInput KeepRatio(int64_t views = 1) {
  models::ImageInput input;
  input.views = views;
  input.fit = models::Fit::kKeepRatio;
  input.short_side = 0;
  input.long_side = 16;
  input.buckets.stride = 4;
  input.mean = {0, 0, 0};
  input.std = {1 / 255.0F, 1 / 255.0F, 1 / 255.0F};
  return input;
}

models::ImageInput Crop(int64_t side) {
  models::ImageInput input;
  input.height = side;
  input.width = side;
  return input;
}

SharedBytes Shared(std::string bytes) {
  auto owner = std::make_shared<std::string>(std::move(bytes));
  const std::string_view view = *owner;
  return {.owner = std::move(owner), .bytes = view};
}

// Of one colour.
Picture Flat(int width, int height, char value) {
  return RawPicture{
      .width = width, .height = height, .data = Shared(std::string(size_t{3} * width * height, value))};
}

// Counts up from 0.
TensorInput Tensor(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t side : shape) count *= side;
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  std::string bytes(count * sizeof(float), '\0');
  if (count > 0) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {.shape = shape, .data = Shared(std::move(bytes))};
}

class NetworkInputTest : public ::testing::Test {
 protected:
  std::unique_ptr<PredictCall> Call(Input content, int views = 1) {
    Request request;
    request.input = std::move(content);
    request.views = views;
    request.arrival = clock_.Now();
    request.input_name = views == 2 ? "stereo" : "raw";
    request.cancellation = cancellation_;
    auto call = std::make_unique<PredictCall>(
        std::move(request), [](absl::StatusOr<Response>) {},
        PredictCall::Server{.version = 1,
                            .description = &description_,
                            .metrics = model_metrics_.get(),
                            .all_metrics = &metrics_,
                            .clock = &clock_});
    call->ticket() = *admission_->Admit(0);
    return call;
  }

  absl::Status Make(PredictCall& call, const models::ImageInput& input) {
    return MakeItems(call, input, {}, &clock_);
  }

  std::string Refusal(Input content, const models::ImageInput& input, int views = 1) {
    const auto call = Call(std::move(content), views);
    absl::Status status = CheckInput(call->request(), "x", input);
    if (status.ok()) status = Make(*call, input);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  FakeClock clock_;
  models::Description description_;
  Metrics metrics_{"test"};
  std::unique_ptr<ModelMetrics> model_metrics_ = metrics_.ForModel("m", 1, "stereo");
  std::unique_ptr<Admission> admission_ = *Admission::Create({.max_inflight_pixels = 1000});
  std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
};

TEST_F(NetworkInputTest, EachPictureGoesToItsOwnBucket) {
  const auto call = Call(std::vector<Picture>{Flat(5, 3, 1), Flat(4, 8, 2), Flat(6, 4, 3)});
  ASSERT_TRUE(CheckInput(call->request(), "x", KeepRatio()).ok());
  EXPECT_FALSE(IsReady(call->request(), KeepRatio()));
  ASSERT_TRUE(Make(*call, KeepRatio()).ok());
  const auto& items = call->items();
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].placement, (models::Placement{{3, 5}, {3, 5}, {4, 8}}));
  EXPECT_EQ(items[1].placement, (models::Placement{{8, 4}, {8, 4}, {8, 4}}));
  EXPECT_EQ(items[2].placement.bucket, items[0].placement.bucket);
  ASSERT_EQ(items[0].pixels.size(), 3u * 4 * 8);
  EXPECT_FLOAT_EQ(items[0].pixels[4], 1);
  EXPECT_EQ(items[0].pixels[5], 0) << "padding";
}

TEST_F(NetworkInputTest, PixelsAndTheNetworksInputAreCharged) {
  const auto call = Call(std::vector<Picture>{Flat(5, 3, 1)});
  ASSERT_TRUE(Make(*call, KeepRatio()).ok());
  EXPECT_EQ(admission_->inflight().pixels, 5 * 3 + 4 * (4 * 8));
  // 12 x 16 pixels, for which four times as much would follow.
  const auto second = Call(std::vector<Picture>{Flat(16, 12, 1)});
  EXPECT_EQ(Make(*second, KeepRatio()).code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(NetworkInputTest, LeftAndRightFollowEachOther) {
  const auto call =
      Call(std::vector<Picture>{Flat(4, 4, 1), Flat(4, 4, 2), Flat(3, 4, 3), Flat(3, 4, 4)}, /*views=*/2);
  EXPECT_EQ(call->request().size(), 2);
  ASSERT_TRUE(CheckInput(call->request(), "x", KeepRatio(2)).ok());
  ASSERT_TRUE(Make(*call, KeepRatio(2)).ok());
  ASSERT_EQ(call->items().size(), 2u);
  const auto& pixels = call->items()[0].pixels;
  ASSERT_EQ(pixels.size(), 6u * 16);
  for (size_t i = 0; i < pixels.size(); ++i) EXPECT_FLOAT_EQ(pixels[i], i < 48 ? 1 : 2);
  EXPECT_FLOAT_EQ(call->items()[1].pixels[0], 3);
  EXPECT_FLOAT_EQ(call->items()[1].pixels[48], 4);
}

TEST_F(NetworkInputTest, SaysHowManyPicturesAreWanted) {
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 4, 1)}, KeepRatio(2)),
              HasSubstr("raw: model 'x' takes stereo pairs; send left and right"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 4, 1), Flat(4, 4, 1)}, KeepRatio(1), 2),
              HasSubstr("stereo: model 'x' takes one picture"));
}

TEST_F(NetworkInputTest, PicturesOfAPairHaveOneSize) {
  EXPECT_THAT(
      Refusal(std::vector<Picture>{Flat(4, 5, 1), Flat(5, 4, 1)}, KeepRatio(2), 2),
      AllOf(HasSubstr("stereo: the left picture is 4 x 5 pixels large"), HasSubstr("right one 5 x 4")));
}

TEST_F(NetworkInputTest, ErrorsNameThePicture) {
  const Picture broken = EncodedPicture{.data = Shared("GIF89a")};
  EXPECT_THAT(Refusal(std::vector<Picture>{broken}, KeepRatio()), HasSubstr("raw: not a picture"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 4, 1), broken}, KeepRatio()),
              HasSubstr("raw: picture 1: not a picture"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 4, 1), broken}, KeepRatio(2), 2),
              HasSubstr("stereo: right: not a picture"));
}

TEST_F(NetworkInputTest, TensorOfItsBucketsSizeIsNotCopied) {
  const auto call = Call(Tensor({2, 3, 4, 8}));
  ASSERT_TRUE(CheckInput(call->request(), "x", KeepRatio()).ok());
  EXPECT_TRUE(IsReady(call->request(), KeepRatio()));
  ASSERT_TRUE(Make(*call, KeepRatio()).ok());
  ASSERT_EQ(call->items().size(), 2u);
  const char* const bytes = std::get<TensorInput>(call->request().input).data.bytes.data();
  EXPECT_EQ(static_cast<const void*>(call->items()[1].pixels.data()), bytes + 96 * sizeof(float));
  EXPECT_EQ(admission_->inflight().pixels, 0);
}

TEST_F(NetworkInputTest, OtherTensorsArePadded) {
  const auto call = Call(Tensor({2, 3, 2, 3}));
  ASSERT_TRUE(CheckInput(call->request(), "x", KeepRatio()).ok());
  EXPECT_FALSE(IsReady(call->request(), KeepRatio()));
  ASSERT_TRUE(Make(*call, KeepRatio()).ok());
  ASSERT_EQ(call->items().size(), 2u);
  for (int64_t n = 0; n < 2; ++n) {
    const Item& item = call->items()[n];
    EXPECT_EQ(item.placement, (models::Placement{{2, 3}, {2, 3}, {4, 4}}));
    ASSERT_EQ(item.pixels.size(), 3u * 4 * 4);
    for (int64_t i = 0; i < 48; ++i) {
      const int64_t c = i / 16;
      const int64_t y = i / 4 % 4;
      const int64_t x = i % 4;
      const int64_t expected = y < 2 && x < 3 ? ((n * 3 + c) * 2 + y) * 3 + x : 0;
      EXPECT_EQ(item.pixels[i], static_cast<float>(expected));
    }
  }
}

TEST_F(NetworkInputTest, TensorsAreNeverScaled) {
  models::ImageInput input = KeepRatio();
  // Pictures would be enlarged.
  input.short_side = 12;
  const auto call = Call(Tensor({1, 3, 4, 4}));
  ASSERT_TRUE(CheckInput(call->request(), "x", input).ok());
  ASSERT_TRUE(Make(*call, input).ok());
  EXPECT_EQ(call->items()[0].placement, (models::Placement{{4, 4}, {4, 4}, {4, 4}}));
}

TEST_F(NetworkInputTest, TensorsThatDoNotFitAreRefused) {
  EXPECT_THAT(Refusal(Tensor({1, 3, 4, 17}), KeepRatio()),
              AllOf(HasSubstr("[1,3,4,17], too large"), HasSubstr("above 16"), HasSubstr("stride:4")));
  models::ImageInput listed = KeepRatio();
  listed.buckets.sizes = {{8, 16}};
  EXPECT_THAT(Refusal(Tensor({1, 3, 9, 4}), listed), HasSubstr("8x16"));
  EXPECT_THAT(Refusal(Tensor({1, 6, 4, 4}), KeepRatio()), HasSubstr("expected [n,3,h,w]"));
  EXPECT_THAT(Refusal(Tensor({1, 3, 4, 4}), KeepRatio(2)), HasSubstr("expected [n,6,h,w]"));
  EXPECT_THAT(Refusal(Tensor({1, 3, 0, 4}), KeepRatio()), HasSubstr("at least 1"));
  EXPECT_THAT(Refusal(Tensor({1, 3, 4}), KeepRatio()), HasSubstr("[1,3,4]"));
  EXPECT_THAT(Refusal(Tensor({1, 3, 4, 5}), Crop(4)), HasSubstr("[1,3,4,5], expected [n,3,4,4]"));
}

TEST_F(NetworkInputTest, CroppingModelsTakeTheirOwnSizeAlone) {
  const auto call = Call(Tensor({1, 3, 4, 4}));
  ASSERT_TRUE(CheckInput(call->request(), "x", Crop(4)).ok());
  EXPECT_TRUE(IsReady(call->request(), Crop(4)));
  ASSERT_TRUE(Make(*call, Crop(4)).ok());
  EXPECT_EQ(call->items()[0].placement, (models::Placement{{4, 4}, {4, 4}, {4, 4}}));
}

TEST_F(NetworkInputTest, CancelledCallIsNotDecoded) {
  const auto call = Call(std::vector<Picture>{Flat(4, 4, 1)});
  cancellation_->Cancel();
  EXPECT_EQ(Make(*call, KeepRatio()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(admission_->inflight().pixels, 0);
}

}  // namespace
}  // namespace saccade::server
