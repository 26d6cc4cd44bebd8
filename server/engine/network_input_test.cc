#include "server/engine/network_input.h"

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/fake_clock.h"
#include "server/core/retry_hint.h"
#include "server/core/shed_reason.h"
#include "server/decode/testing/video_fixtures.h"
#include "server/engine/predict_call.h"
#include "server/engine/testing/fake_model.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Pictures are not scaled, and padded to multiples of 4.
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

// A picture of one colour.
Picture Flat(int width, int height, char value) {
  return RawPicture{
      .width = width, .height = height, .data = Shared(std::string(size_t{3} * width * height, value))};
}

// The values count up from 0.
TensorInput Tensor(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t side : shape) count *= side;
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  std::string bytes(count * sizeof(float), '\0');
  if (count > 0) std::memcpy(bytes.data(), values.data(), bytes.size());
  SharedBytes shared = Shared(std::move(bytes));
  return {.shape = shape, .data = BytePieces(shared.bytes, shared.owner)};
}

// The item's pixels with padding, as the network sees them.
std::vector<float> PixelsOf(const Item& item, const models::ImageInput& input) {
  const models::Placement& placed = item.placement;
  std::vector<float> pixels(placed.depth * input.channels() * placed.bucket.height * placed.bucket.width,
                            -1.0F);
  WritePixels(item.pixels, item.placement, absl::MakeSpan(pixels));
  return pixels;
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
        std::move(request), [](const absl::StatusOr<Response>&) {},
        PredictCall::Deps{
            .model = std::make_shared<FakeModel>(1, &description_, model_metrics_.get(), consider_),
            .metrics = &metrics_,
            .clock = &clock_});
    call->ticket() = *admission_->Admit({.bytes = 0});
    return call;
  }

  absl::Status Make(PredictCall& call, const models::ImageInput& input) {
    return MakeItems(call, input, ThreadDecoder(limits_), &clock_);
  }

  std::string Refusal(Input content, const models::ImageInput& input, int views = 1) {
    const auto call = Call(std::move(content), views);
    absl::Status status = CheckInput(call->request(), "x", input);
    if (status.ok()) status = Make(*call, input);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return std::string(status.message());
  }

  FakeClock clock_;
  DecodeLimits limits_;
  // Used by calls made after it is set.
  FakeModel::ConsiderFunction consider_;
  models::Description description_;
  Metrics metrics_{"test"};
  std::unique_ptr<ModelMetrics> model_metrics_ = metrics_.ForModel("m", 1, "stereo");
  std::unique_ptr<Admission> admission_ = *Admission::Create({.max_decoded_bytes = 3000}, Clock::Real());
  std::shared_ptr<Cancellation> cancellation_ = std::make_shared<Cancellation>();
};

TEST_F(NetworkInputTest, EachPictureGoesToItsOwnBucket) {
  const auto call = Call(std::vector<Picture>{Flat(5, 3, 1), Flat(4, 8, 2), Flat(6, 4, 3)});
  ASSERT_TRUE(CheckInput(call->request(), "x", KeepRatio()).ok());
  EXPECT_FALSE(IsReady(call->request()));
  ASSERT_TRUE(Make(*call, KeepRatio()).ok());
  const auto& items = call->items();
  ASSERT_EQ(items.size(), 3u);
  EXPECT_EQ(items[0].placement, (models::Placement{{3, 5}, {3, 5}, {4, 8}}));
  EXPECT_EQ(items[1].placement, (models::Placement{{8, 4}, {8, 4}, {8, 4}}));
  EXPECT_EQ(items[2].placement.bucket, items[0].placement.bucket);
  const std::vector<float> pixels = PixelsOf(items[0], KeepRatio());
  EXPECT_FLOAT_EQ(pixels[4], 1);
  EXPECT_EQ(pixels[5], 0) << "padding";
}

TEST_F(NetworkInputTest, DecodedPicturesAndTheNetworksInputAreCharged) {
  const auto call = Call(std::vector<Picture>{Flat(5, 3, 1)});
  ASSERT_TRUE(Make(*call, KeepRatio()).ok());
  EXPECT_EQ(admission_->inflight().decoded_bytes, 3 * (5 * 3) + 4 * 3 * (4 * 8));
  // 12 x 16 pixels, whose network input would be four times as much.
  const auto second = Call(std::vector<Picture>{Flat(16, 12, 1)});
  const absl::Status refused = Make(*second, KeepRatio());
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ShedReasonOf(refused), ShedReason::kDecodedBytes);
  EXPECT_TRUE(RetryAfter(refused).has_value()) << "the hint survives the words around it";
}

// It has two weights for each pixel of a side that is scaled down, which take more than the pixels.
TEST_F(NetworkInputTest, TheWeightsOfAVeryLongPictureAreCharged) {
  const std::vector<Picture> pictures = {Flat(1'000'000, 1, 1)};
  admission_ = *Admission::Create({.max_decoded_bytes = 8 << 20}, Clock::Real());
  EXPECT_THAT(Refusal(pictures, KeepRatio()), HasSubstr("--max-decoded-bytes"));
  models::ImageInput nearest = KeepRatio();
  nearest.antialias = false;
  EXPECT_TRUE(Make(*Call(pictures), nearest).ok());
  admission_ = *Admission::Create({.max_decoded_bytes = 12 << 20}, Clock::Real());
  const auto call = Call(pictures);
  const absl::Status made = Make(*call, KeepRatio());
  EXPECT_TRUE(made.ok()) << made;
  EXPECT_GT(admission_->inflight().decoded_bytes, 10'000'000);
}

TEST_F(NetworkInputTest, TheWeightsOfAPairsPicturesAreChargedOnce) {
  const std::vector<Picture> pictures(2, Flat(1'000'000, 1, 1));
  admission_ = *Admission::Create({.max_decoded_bytes = 12 << 20}, Clock::Real());
  EXPECT_THAT(Refusal(pictures, KeepRatio(2), 2), HasSubstr("--max-decoded-bytes"));
  admission_ = *Admission::Create({.max_decoded_bytes = 16 << 20}, Clock::Real());
  const absl::Status made = Make(*Call(pictures, 2), KeepRatio(2));
  EXPECT_TRUE(made.ok()) << made;
}

// Its floats and their encoding take more than the decoded picture that was charged for.
TEST_F(NetworkInputTest, AMapOfFloatsIsCharged) {
  const int64_t before = 3 * (5 * 3) + 4 * 3 * (4 * 8);
  for (const auto& [map, more] : {std::pair(ResultMap::kNone, 0), std::pair(ResultMap::kLabels, 0),
                                  std::pair(ResultMap::kFloats, 5 * (5 * 3))}) {
    const auto call = Call(std::vector<Picture>{Flat(5, 3, 1)});
    ASSERT_TRUE(MakeItems(*call, KeepRatio(), ThreadDecoder(limits_), &clock_, {}, map).ok());
    EXPECT_EQ(admission_->inflight().decoded_bytes, before + more);
  }
}

// The header does not tell whether the picture lies on its side.
TEST_F(NetworkInputTest, WhatWouldBeRefusedAfterwardsIsNotDecoded) {
  std::vector<int64_t> asked;
  consider_ = [&](const BatchTask::Traits& traits, absl::Span<const int64_t> buckets) {
    EXPECT_EQ(traits.size, 1);
    asked.assign(buckets.begin(), buckets.end());
    return absl::ResourceExhaustedError("there is no room in time");
  };
  const auto id = [](models::Size sent) { return BucketId(models::PlacementOf(KeepRatio(), sent)); };
  auto call = Call(std::vector<Picture>{Flat(7, 3, 1)});
  EXPECT_EQ(Make(*call, KeepRatio()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(asked, ElementsAre(id({3, 7}), id({7, 3})));
  EXPECT_TRUE(call->items().empty());
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);

  call = Call(std::vector<Picture>{Flat(4, 4, 1)});
  EXPECT_FALSE(Make(*call, KeepRatio()).ok());
  EXPECT_THAT(asked, ElementsAre(id({4, 4})));
}

TEST_F(NetworkInputTest, LeftAndRightFollowEachOther) {
  const auto call =
      Call(std::vector<Picture>{Flat(4, 4, 1), Flat(4, 4, 2), Flat(3, 4, 3), Flat(3, 4, 4)}, /*views=*/2);
  EXPECT_EQ(call->request().size(), 2);
  ASSERT_TRUE(CheckInput(call->request(), "x", KeepRatio(2)).ok());
  ASSERT_TRUE(Make(*call, KeepRatio(2)).ok());
  ASSERT_EQ(call->items().size(), 2u);
  const std::vector<float> pixels = PixelsOf(call->items()[0], KeepRatio(2));
  const std::vector<float> second = PixelsOf(call->items()[1], KeepRatio(2));
  for (size_t i = 0; i < pixels.size(); ++i) EXPECT_FLOAT_EQ(pixels[i], i < 48 ? 1 : 2);
  EXPECT_FLOAT_EQ(second[0], 3);
  EXPECT_FLOAT_EQ(second[48], 4);
}

TEST_F(NetworkInputTest, SaysHowManyPicturesAreWanted) {
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 4, 1)}, KeepRatio(2)),
              HasSubstr("raw: model 'x' takes stereo pairs; send left and right"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 4, 1), Flat(4, 4, 1)}, KeepRatio(1), 2),
              HasSubstr("stereo: model 'x' takes one picture"));
}

TEST_F(NetworkInputTest, PicturesOfAPairHaveOneSize) {
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 5, 1), Flat(5, 4, 1)}, KeepRatio(2), 2),
              AllOf(HasSubstr("stereo: the left picture is 4 x 5 pixels"), HasSubstr("right one 5 x 4")));
}

TEST_F(NetworkInputTest, ErrorsNameThePicture) {
  const Picture broken = EncodedPicture{.data = Shared("GIF89a")};
  EXPECT_THAT(Refusal(std::vector<Picture>{broken}, KeepRatio()), HasSubstr("raw: not a readable picture"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 4, 1), broken}, KeepRatio()),
              HasSubstr("raw: picture 1: not a readable picture"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(4, 4, 1), broken}, KeepRatio(2), 2),
              HasSubstr("stereo: right: not a readable picture"));
}

TEST_F(NetworkInputTest, TensorOfItsBucketsSizeIsNotCopied) {
  const auto call = Call(Tensor({2, 3, 4, 8}));
  ASSERT_TRUE(CheckInput(call->request(), "x", KeepRatio()).ok());
  EXPECT_TRUE(IsReady(call->request()));
  ASSERT_TRUE(Make(*call, KeepRatio()).ok());
  ASSERT_EQ(call->items().size(), 2u);
  const char* const bytes = std::get<TensorInput>(call->request().input).data.pieces()[0].data();
  EXPECT_EQ(call->items()[1].pixels.pieces()[0].data(), bytes + 96 * sizeof(float));
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);
}

TEST_F(NetworkInputTest, OtherTensorsArePadded) {
  const auto call = Call(Tensor({2, 3, 2, 3}));
  ASSERT_TRUE(CheckInput(call->request(), "x", KeepRatio()).ok());
  EXPECT_TRUE(IsReady(call->request()));
  ASSERT_TRUE(Make(*call, KeepRatio()).ok());
  // Two items, each 4 x 4.
  EXPECT_EQ(admission_->inflight().decoded_bytes, 2 * 4 * 3 * 16);
  ASSERT_EQ(call->items().size(), 2u);
  for (int64_t n = 0; n < 2; ++n) {
    const Item& item = call->items()[n];
    EXPECT_EQ(item.placement, (models::Placement{{2, 3}, {2, 3}, {4, 4}}));
    const std::vector<float> pixels = PixelsOf(item, KeepRatio());
    for (int64_t i = 0; i < 48; ++i) {
      const int64_t c = i / 16;
      const int64_t y = i / 4 % 4;
      const int64_t x = i % 4;
      const int64_t expected = y < 2 && x < 3 ? ((n * 3 + c) * 2 + y) * 3 + x : 0;
      EXPECT_EQ(pixels[i], static_cast<float>(expected));
    }
  }
}

TEST_F(NetworkInputTest, PiecesOfATensorArePutTogetherWhereverTheyAreCut) {
  const TensorInput whole = Tensor({2, 3, 2, 3});
  const std::string_view bytes = whole.data.pieces()[0];
  for (size_t cut = 1; cut < bytes.size(); ++cut) {
    // At another address, so that the pieces are not merged; and unaligned.
    const std::string front = absl::StrCat("x", std::string(bytes.substr(0, cut)));
    TensorInput cut_in_two = {.shape = whole.shape, .data = BytePieces(std::string_view(front).substr(1))};
    cut_in_two.data.Add(bytes.substr(cut));
    const auto expected = Call(whole);
    const auto call = Call(cut_in_two);
    for (const auto& made : {expected.get(), call.get()}) ASSERT_TRUE(Make(*made, KeepRatio()).ok());
    for (const size_t item : {0, 1}) {
      EXPECT_EQ(PixelsOf(call->items()[item], KeepRatio()), PixelsOf(expected->items()[item], KeepRatio()))
          << cut;
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

TEST_F(NetworkInputTest, TensorsAreTakenHoweverPicturesAreScaled) {
  models::ImageInput exact = KeepRatio();
  exact.short_side = 12;
  exact.exact_short_side = true;
  EXPECT_TRUE(CheckInput(Call(Tensor({1, 3, 4, 6}))->request(), "x", exact).ok());
  models::ImageInput either = KeepRatio();
  either.either_side = true;
  either.height = either.width = 12;
  either.multiple = 2;
  EXPECT_TRUE(CheckInput(Call(Tensor({1, 3, 4, 6}))->request(), "x", either).ok());
  EXPECT_THAT(Refusal(Tensor({1, 3, 4, 5}), either),
              HasSubstr("expected [n,3,h,w] with h and w multiples of 2"));
  EXPECT_THAT(Refusal(Tensor({1, 3, 4, 18}), either), HasSubstr("too large"));
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
  ASSERT_TRUE(Make(*call, Crop(4)).ok());
  EXPECT_EQ(call->items()[0].placement, (models::Placement{{4, 4}, {4, 4}, {4, 4}}));
}

models::ImageInput Clips(int64_t side) {
  models::ImageInput input = Crop(side);
  input.medium = models::Medium::kClip;
  input.short_side = side;
  input.clip = {.max_frames = 6, .frame_multiple = 4, .frames_per_second = 25};
  input.mean = {0, 0, 0};
  input.std = {1 / 255.0F, 1 / 255.0F, 1 / 255.0F};
  return input;
}

TEST_F(NetworkInputTest, FramesFollowEachOtherAndAreFilledUp) {
  const auto call = Call(std::vector<Picture>{Flat(2, 2, 1), Flat(2, 2, 2), Flat(2, 2, 3)}, /*views=*/3);
  ASSERT_TRUE(CheckInput(call->request(), "x", Clips(2)).ok());
  const absl::Status made = Make(*call, Clips(2));
  ASSERT_TRUE(made.ok()) << made;
  ASSERT_EQ(call->items().size(), 1u);
  const Item& item = call->items()[0];
  EXPECT_EQ(item.placement, (models::Placement{{2, 2}, {2, 2}, {2, 2}, 3, 4}));
  const std::vector<float> pixels = PixelsOf(item, Clips(2));
  for (size_t i = 0; i < pixels.size(); ++i) {
    const size_t frame = i / 12;
    EXPECT_FLOAT_EQ(pixels[i], frame < 3 ? static_cast<float>(frame + 1) : 0.0F);
  }
  // The buffer for four frames of 2 x 2, and one decoded frame.
  EXPECT_EQ(admission_->inflight().decoded_bytes, 4 * 4 * 3 * 4 + 3 * 4);
}

TEST_F(NetworkInputTest, FramesThatWouldBeRefusedAfterwardsAreNotDecoded) {
  int asked = 0;
  consider_ = [&](const BatchTask::Traits&, absl::Span<const int64_t> buckets) {
    ++asked;
    EXPECT_EQ(buckets.front(), BucketId(models::PlacementOfClip(Clips(2), {2, 2}, 3)));
    return absl::ResourceExhaustedError("there is no room in time");
  };
  const auto call = Call(std::vector<Picture>(3, Flat(2, 2, 1)), /*views=*/3);
  EXPECT_EQ(Make(*call, Clips(2)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);
}

TEST_F(NetworkInputTest, ClipsAreBoundedAndOfOneSize) {
  const std::vector<Picture> seven(7, Flat(2, 2, 1));
  EXPECT_THAT(Refusal(seven, Clips(2), 7), HasSubstr("7 frames; the model takes at most 6"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(2, 2, 1), Flat(3, 2, 1)}, Clips(2), 2),
              AllOf(HasSubstr("frame 1: it is 3 x 2"), HasSubstr("frame 0 is 2 x 2")));
  EXPECT_THAT(Refusal(std::vector<Picture>{EncodedPicture{.data = Shared("mpeg")}}, Clips(2)),
              HasSubstr("not a readable video"));
  EXPECT_THAT(Refusal(std::vector<Picture>{RawVolume{}}, Clips(2)), HasSubstr("takes clips"));
}

TEST_F(NetworkInputTest, AVideoThatWouldBeRefusedAfterwardsIsNotDecoded) {
  const auto video = [](int frames) {
    return std::vector<Picture>{EncodedPicture{
        .data = Shared(MotionJpegAvi({32, 32}, std::vector<std::string>(frames, LargeJpeg(32))))}};
  };
  std::vector<int64_t> buckets;
  consider_ = [&](const BatchTask::Traits&, absl::Span<const int64_t> one) {
    buckets.insert(buckets.end(), one.begin(), one.end());
    return absl::ResourceExhaustedError("there is no room in time");
  };
  const auto bucket = [](int64_t frames) {
    return BucketId(models::PlacementOfClip(Clips(2), {32, 32}, frames));
  };
  for (const int frames : {1, 5, 50}) {
    const auto call = Call(video(frames));
    EXPECT_EQ(Make(*call, Clips(2)).code(), absl::StatusCode::kResourceExhausted);
  }
  // The longest clip has six frames.
  EXPECT_THAT(buckets, ElementsAre(bucket(1), bucket(5), bucket(6)));
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);
}

TEST_F(NetworkInputTest, AVideoThatIsTooLongSaysWhatItClaims) {
  admission_ = *Admission::Create({.max_decoded_bytes = 16 << 20}, Clock::Real());
  limits_.max_pixels = 8 * 32 * 32;
  std::string video = MotionJpegAvi({32, 32}, std::vector<std::string>(8, LargeJpeg(32)));
  const auto refusal = [&] {
    return Refusal(std::vector<Picture>{EncodedPicture{.data = Shared(video)}}, Clips(2));
  };
  EXPECT_THAT(refusal(), HasSubstr("at most 6 frames, 0.24 seconds; the file claims 0.32 seconds; split it"));
  // The number of frames in the header of the stream.
  video.replace(video.find("strh") + 40, 4, std::string(4, '\0'));
  EXPECT_THAT(refusal(), HasSubstr("at most 6 frames, 0.24 seconds; split it"));
}

// Frames that the model does not see cost as much as others.
TEST_F(NetworkInputTest, TheFramesOfAVideoAreBoundedTogether) {
  limits_.max_pixels = 32 * 32;
  admission_ = *Admission::Create({.max_decoded_bytes = 16 << 20}, Clock::Real());
  models::ImageInput input = Clips(2);
  input.clip.frames_per_second = 2;  // every 12th or 13th frame of the file
  input.clip.max_frames = 8 * 6;
  const std::string frame = LargeJpeg(32);
  const auto video = [&frame](size_t frames) {
    return std::vector<Picture>{
        EncodedPicture{.data = Shared(MotionJpegAvi({32, 32}, std::vector<std::string>(frames, frame)))}};
  };
  const auto call = Call(video(6));
  ASSERT_TRUE(CheckInput(call->request(), "x", input).ok());
  const absl::Status made = Make(*call, input);
  ASSERT_TRUE(made.ok()) << made;
  EXPECT_THAT(Refusal(video(7), input), AllOf(HasSubstr("more than 6144 pixels together"),
                                              HasSubstr("25 frames of 32 x 32 in a second"),
                                              HasSubstr("send fewer or smaller frames")));
  input.clip.max_frames = 6;
  const auto one = Call(video(1));
  EXPECT_TRUE(Make(*one, input).ok()) << "it has no more pixels than a picture may have";
  EXPECT_THAT(Refusal(video(2), input), HasSubstr("more than 1024 pixels together"));
}

TEST_F(NetworkInputTest, AFrameLargerThanTheFirstIsChargedBeforeItIsDecoded) {
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(2, 2, 1), Flat(33, 32, 1)}, Clips(2), 2),
              HasSubstr("--max-decoded-bytes"));
}

TEST_F(NetworkInputTest, TheWeightsOfVeryLongFramesAreChargedOnce) {
  models::ImageInput input = Clips(2);
  input.fit = models::Fit::kExact;
  const std::vector<Picture> frames(2, Flat(1'000'000, 1, 1));
  admission_ = *Admission::Create({.max_decoded_bytes = 8 << 20}, Clock::Real());
  EXPECT_THAT(Refusal(frames, input, 2), HasSubstr("--max-decoded-bytes"));
  admission_ = *Admission::Create({.max_decoded_bytes = 10 << 20}, Clock::Real());
  const absl::Status made = Make(*Call(frames, 2), input);
  EXPECT_TRUE(made.ok()) << made;
}

TEST_F(NetworkInputTest, TensorsOfClipsAreFilledUp) {
  const auto call = Call(Tensor({1, 3, 3, 2, 2}));
  ASSERT_TRUE(CheckInput(call->request(), "x", Clips(2)).ok());
  ASSERT_TRUE(Make(*call, Clips(2)).ok());
  const Item& item = call->items()[0];
  EXPECT_EQ(item.placement.sent_depth, 3);
  EXPECT_EQ(item.placement.depth, 4);
  const std::vector<float> pixels = PixelsOf(item, Clips(2));
  for (size_t i = 0; i < 48; ++i) EXPECT_EQ(pixels[i], i < 36 ? static_cast<float>(i) : 0.0F) << i;
  EXPECT_THAT(Refusal(Tensor({1, 7, 3, 2, 2}), Clips(2)), HasSubstr("expected [n,frames,3,2,2] with 1 to 6"));
}

models::ImageInput Volumes() {
  models::ImageInput input;
  input.medium = models::Medium::kVolume;
  input.fit = models::Fit::kKeepRatio;
  input.short_side = 0;
  input.volume = {.max_voxels = 24, .depth = 4};
  return input;
}

RawVolume Voxels(int depth, int height, int width) {
  std::string bytes(size_t{2} * depth * height * width, '\0');
  for (size_t i = 0; i < bytes.size(); i += 2) bytes[i] = static_cast<char>(i / 2);
  return {.depth = depth,
          .height = height,
          .width = width,
          .type = VoxelType::kUint16,
          .data = Shared(std::move(bytes))};
}

TEST_F(NetworkInputTest, VoxelsBecomeFloats) {
  const auto call = Call(std::vector<Picture>{Voxels(2, 3, 4)});
  ASSERT_TRUE(CheckInput(call->request(), "x", Volumes()).ok());
  const absl::Status made = Make(*call, Volumes());
  ASSERT_TRUE(made.ok()) << made;
  const Item& item = call->items()[0];
  EXPECT_EQ(item.placement, models::PlacementOfVolume({3, 4}, 2));
  const std::vector<float> pixels = PixelsOf(item, Volumes());
  for (size_t i = 0; i < 24; ++i) EXPECT_EQ(pixels[i], static_cast<float>(i));
  EXPECT_EQ(admission_->inflight().decoded_bytes, 3 * 4 * 24) << "input, result and answer";
}

TEST_F(NetworkInputTest, AVolumeThatWouldBeRefusedAfterwardsIsNotDecoded) {
  std::vector<int64_t> buckets;
  consider_ = [&](const BatchTask::Traits&, absl::Span<const int64_t> one) {
    buckets.insert(buckets.end(), one.begin(), one.end());
    return absl::ResourceExhaustedError("there is no room in time");
  };
  const auto call = Call(std::vector<Picture>{Voxels(2, 3, 4)});
  EXPECT_EQ(Make(*call, Volumes()).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(buckets, ElementsAre(BucketId(models::PlacementOfVolume({3, 4}, 2))));
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);
}

TEST_F(NetworkInputTest, VolumesAreBounded) {
  EXPECT_THAT(Refusal(std::vector<Picture>{Voxels(5, 3, 4)}, Volumes()),
              AllOf(HasSubstr("5 x 3 x 4"), HasSubstr("at most 24"), HasSubstr("max_voxels")));
  EXPECT_THAT(Refusal(std::vector<Picture>{Flat(2, 2, 1)}, Volumes()), HasSubstr("takes volumes"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Voxels(1, 1, 1)}, KeepRatio()), HasSubstr("takes one picture"));
  EXPECT_THAT(Refusal(Tensor({1, 1, 5, 3, 4}), Volumes()), HasSubstr("at most 24"));
  EXPECT_THAT(Refusal(Tensor({1, 2, 3, 4}), Volumes()), HasSubstr("expected [n,1,d,h,w]"));
  EXPECT_TRUE(CheckInput(Call(Tensor({1, 1, 2, 3, 4}))->request(), "x", Volumes()).ok());
}

TEST_F(NetworkInputTest, VolumesAreBoundedAsTheyAreComputed) {
  models::ImageInput padding = Volumes();
  padding.volume = {.max_voxels = 64, .depth_multiple = 4, .side_multiple = 4, .depth = 4};
  const auto refused = AllOf(HasSubstr("1 x 5 x 4"), HasSubstr("pads to 4 x 8 x 4"), HasSubstr("at most 64"),
                             HasSubstr("max_voxels"));
  EXPECT_THAT(Refusal(std::vector<Picture>{Voxels(1, 5, 4)}, padding), refused);
  EXPECT_THAT(Refusal(Tensor({1, 1, 1, 5, 4}), padding), refused);
  EXPECT_TRUE(Make(*Call(std::vector<Picture>{Voxels(1, 3, 4)}), padding).ok());
  EXPECT_TRUE(CheckInput(Call(Tensor({1, 1, 1, 3, 4}))->request(), "x", padding).ok());
  padding.volume.depth_multiple = 1;
  EXPECT_TRUE(CheckInput(Call(Tensor({1, 1, 1, 5, 4}))->request(), "x", padding).ok());
}

TEST_F(NetworkInputTest, CancelledCallIsNotDecoded) {
  const auto call = Call(std::vector<Picture>{Flat(4, 4, 1)});
  cancellation_->Cancel();
  EXPECT_EQ(Make(*call, KeepRatio()).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);
}

}  // namespace
}  // namespace saccade::server
