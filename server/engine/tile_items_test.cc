#include "server/engine/tile_items.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/core/bad_field.h"
#include "server/core/fake_clock.h"
#include "server/engine/network_input.h"
#include "server/engine/predict_call.h"
#include "server/engine/testing/fake_model.h"
#include "server/pictures/testing/tiff_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kWidth = 23;
constexpr int kHeight = 17;

// Pixels are not scaled, and a tile is not padded.
models::ImageInput Unscaled() {
  models::ImageInput input;
  input.fit = models::Fit::kKeepRatio;
  input.short_side = 0;
  input.long_side = 64;
  input.buckets.stride = 1;
  input.mean = {0, 0, 0};
  input.std = {1 / 255.0F, 1 / 255.0F, 1 / 255.0F};
  return input;
}

// The red channel counts along the rows.
Picture Counted(int width = kWidth, int height = kHeight) {
  auto pixels = std::make_shared<std::string>(size_t{3} * width * height, '\0');
  for (int i = 0; i < width * height; ++i) (*pixels)[size_t{3} * i] = static_cast<char>(i % 251);
  const std::string_view view = *pixels;
  return RawPicture{.width = width, .height = height, .data = {.owner = std::move(pixels), .bytes = view}};
}

class TileItemsTest : public ::testing::Test {
 protected:
  std::unique_ptr<PredictCall> Call(std::optional<models::TileRules> tiles, Picture picture = Counted(),
                                    std::optional<Region> region = std::nullopt) {
    Request request;
    request.input = std::vector<Picture>{std::move(picture)};
    request.tiles = tiles;
    request.region = region;
    request.input_name = "raw";
    return Call(std::move(request));
  }

  std::unique_ptr<PredictCall> Call(Request request) {
    request.arrival = clock_.Now();
    auto model = std::make_shared<FakeModel>(1, &description_, model_metrics_.get(), nullptr);
    model->set_max_items(max_items_);
    auto call = std::make_unique<PredictCall>(
        std::move(request), [](const absl::StatusOr<Response>&) {},
        PredictCall::Deps{.model = std::move(model), .metrics = &metrics_, .clock = &clock_});
    call->ticket() = *admission_->Admit({.bytes = 0});
    return call;
  }

  absl::Status Make(PredictCall& call, const models::TileRules& models_own = {}) {
    const models::TileRules tiles = TilesFor(call.request(), models_own);
    description_.task = models::Task::kDetection;
    if (absl::Status fits = CheckTiles(call.request(), "m", description_, tiles); !fits.ok()) return fits;
    return MakeItems(call, Unscaled(), ThreadDecoder(DecodeLimits()), &clock_, tiles);
  }

  // The field and the message.
  std::string Refusal(const models::TileRules& tiles) {
    const auto call = Call(tiles);
    const absl::Status status = Make(*call);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    return BadFieldOf(status).value_or("none") + "; " + std::string(status.message());
  }

  FakeClock clock_;
  models::Description description_;
  int64_t max_items_ = 2000;
  Metrics metrics_{"test"};
  std::unique_ptr<ModelMetrics> model_metrics_ = metrics_.ForModel("m", 1, "detection");
  std::unique_ptr<Admission> admission_ = *Admission::Create({.max_decoded_bytes = 1 << 20}, Clock::Real());
};

float First(const Item& item) {
  float value = 0;
  PieceReader(item.pixels).Read(sizeof(value), reinterpret_cast<char*>(&value));
  return value;
}

TEST_F(TileItemsTest, EachTileIsAnItemWithItsOwnPixels) {
  const auto call = Call(models::TileRules{.size = 10, .overlap = 2});
  ASSERT_TRUE(Make(*call).ok());
  const std::vector<models::Tile> tiles = models::TilesOf({kHeight, kWidth}, {.size = 10, .overlap = 2});
  ASSERT_EQ(tiles.size(), 6u);
  ASSERT_EQ(call->items().size(), tiles.size());
  for (size_t i = 0; i < tiles.size(); ++i) {
    EXPECT_EQ(call->items()[i].placement.sent, (models::Size{10, 10}));
    EXPECT_EQ(First(call->items()[i]), static_cast<float>((tiles[i].y * kWidth + tiles[i].x) % 251));
  }
}

TEST_F(TileItemsTest, ARegionIsCutWithinThePicture) {
  const Region region{.x = 3, .y = 4, .width = 18, .height = 10};
  const auto call = Call(models::TileRules{.size = 10, .overlap = 2}, Counted(), region);
  ASSERT_TRUE(Make(*call).ok());
  ASSERT_EQ(call->items().size(), 2u);
  EXPECT_EQ(First(call->items()[0]), 4 * kWidth + 3);
  EXPECT_EQ(First(call->items()[1]), 4 * kWidth + 11);
}

// A picture that would take more memory than there may be decoded, of which at most 10,000 pixels are decoded
// at once.
class RegionalItemsTest : public TileItemsTest {
 protected:
  absl::Status MakeOf(PredictCall& call, ResultMap map = ResultMap::kNone) {
    const models::TileRules tiles = TilesFor(call.request(), {});
    return MakeItems(call, Unscaled(), ThreadDecoder({.max_pixels = 10'000, .max_bytes = 1 << 24}), &clock_,
                     tiles, map);
  }

  Picture Large() const { return EncodedPicture{.data = {.owner = nullptr, .bytes = tiff_}}; }

  const std::string tiff_ = Tiff({}, 1000, 800);
};

TEST_F(RegionalItemsTest, OneTileAtATimeIsReadAndChargedFor) {
  const Region region{.x = 700, .y = 500, .width = 250, .height = 250};
  const auto call = Call(models::TileRules{.size = 64, .overlap = 0}, Large(), region);
  const absl::Status made = MakeOf(*call);
  ASSERT_TRUE(made.ok()) << made;
  const std::vector<models::Tile> tiles = models::TilesOf({250, 250}, {.size = 64, .overlap = 0});
  ASSERT_EQ(call->items().size(), tiles.size());
  for (size_t i = 0; i < tiles.size(); ++i) {
    const auto x = static_cast<int>(tiles[i].x) + region.x;
    const auto y = static_cast<int>(tiles[i].y) + region.y;
    EXPECT_EQ(First(call->items()[i]), ValueAt(x, y, 0));
  }
}

TEST_F(RegionalItemsTest, WhatDoesNotFitIsRefused) {
  // The whole picture.
  auto call = Call(std::nullopt, Large());
  EXPECT_THAT(std::string(MakeOf(*call).message()), HasSubstr("ask for a region or for tiles"));
  call = Call(std::nullopt, Large(), Region{.x = 0, .y = 0, .width = 101, .height = 100});
  EXPECT_THAT(std::string(MakeOf(*call).message()), HasSubstr("the region of 101 x 100 pixels is too large"));
  call = Call(models::TileRules{.size = 101, .overlap = 0}, Large(),
              Region{.x = 0, .y = 0, .width = 150, .height = 150});
  EXPECT_THAT(std::string(MakeOf(*call).message()), HasSubstr("at most 10000 pixels of a picture"));
  call = Call(models::TileRules{.size = 10, .overlap = 0}, Large(),
              Region{.x = 990, .y = 0, .width = 11, .height = 20});
  EXPECT_THAT(std::string(MakeOf(*call).message()), HasSubstr("extends beyond the upright picture"));
  // The inputs of all tiles.
  call = Call(models::TileRules{.size = 64, .overlap = 0}, Large());
  EXPECT_THAT(std::string(MakeOf(*call).message()), HasSubstr("--max-decoded-bytes"));
}

// The file's own tiles are decoded again for each tile that is cut.
TEST_F(RegionalItemsTest, TilesFarSmallerThanTheFilesOwnAreRefused) {
  const std::string tiff = Tiff({.tile = 256}, 1000, 800);
  const Picture large = EncodedPicture{.data = {.owner = nullptr, .bytes = tiff}};
  auto call = Call(models::TileRules{.size = 2, .overlap = 0}, large,
                   Region{.x = 200, .y = 200, .width = 8, .height = 8});
  const absl::Status refused = MakeOf(*call);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BadFieldOf(refused), "tiles.size");
  EXPECT_THAT(
      std::string(refused.message()),
      HasSubstr("is 2, but the TIFF's own tiles of 256 x 256 pixels would be decoded for each of 16 "
                "tiles, up to 4194304 pixels together; expected at most 14096: make the size larger"));
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);
  call = Call(models::TileRules{.size = 64, .overlap = 0}, large,
              Region{.x = 200, .y = 200, .width = 128, .height = 128});
  const absl::Status made = MakeOf(*call);
  EXPECT_TRUE(made.ok()) << made;
}

TEST_F(RegionalItemsTest, ARegionWithoutTilesIsReadAlone) {
  const auto call = Call(std::nullopt, Large(), Region{.x = 900, .y = 700, .width = 60, .height = 50});
  const absl::Status made = MakeOf(*call);
  ASSERT_TRUE(made.ok()) << made;
  ASSERT_EQ(call->items().size(), 1u);
  EXPECT_EQ(First(call->items()[0]), ValueAt(900, 700, 0));
}

TEST_F(RegionalItemsTest, MapsOfTheWholePictureAreRefused) {
  for (const bool tiled : {false, true}) {
    const auto tiles = tiled ? std::optional<models::TileRules>({.size = 10, .overlap = 0}) : std::nullopt;
    const auto call = Call(tiles, Large(), Region{.x = 0, .y = 0, .width = 20, .height = 20});
    EXPECT_THAT(std::string(MakeOf(*call, ResultMap::kLabels).message()),
                HasSubstr("1000 x 800 pixels large, and the model's answer would be a map of that size"));
  }
}

TEST_F(TileItemsTest, TheModelsOwnTilesCutOnlyLargerPictures) {
  auto call = Call(std::nullopt);
  ASSERT_TRUE(Make(*call, {.size = 10, .overlap = 2}).ok());
  EXPECT_EQ(call->items().size(), 6u);
  call = Call(std::nullopt);
  ASSERT_TRUE(Make(*call, {.size = 40, .overlap = 2}).ok());
  EXPECT_EQ(call->items().size(), 1u);
  // The request asks for the whole picture.
  call = Call(models::TileRules{});
  ASSERT_TRUE(Make(*call, {.size = 10, .overlap = 2}).ok());
  EXPECT_EQ(call->items().size(), 1u);
}

TEST_F(TileItemsTest, WrongTilesAreRefused) {
  EXPECT_THAT(Refusal({.size = 24, .overlap = 0}),
              HasSubstr("tiles.size; tiles.size: is 24, but the picture is 23 x 17; expected 1 to 23"));
  EXPECT_THAT(Refusal({.size = 10, .overlap = 6}),
              HasSubstr("expected a size of 1 to 16777216, and an overlap of 0"));
  EXPECT_THAT(Refusal({.size = -1}), HasSubstr("expected a size of 1 to 16777216"));
  EXPECT_THAT(Refusal({.size = 16'777'217}), HasSubstr("a size of 16777217 and an overlap of 0; expected a "
                                                       "size of 1 to 16777216"));
}

TEST_F(TileItemsTest, ARegionBeyondThePictureIsNoMatterOfTiles) {
  const models::TileRules tiles = {.size = 10, .overlap = 2};
  const auto beyond = [&](int width, int height) {
    const auto call = Call(tiles, Counted(), Region{.x = 0, .y = 0, .width = width, .height = height});
    const absl::Status status = Make(*call);
    EXPECT_EQ(BadFieldOf(status), "region") << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("extends beyond the upright picture"));
    return admission_->inflight().decoded_bytes;
  };
  // As many tiles as no picture may have, and a few.
  EXPECT_EQ(beyond(1000, 1000), 0);
  EXPECT_EQ(beyond(kWidth + 1, kHeight), 0);
  EXPECT_GT(beyond(kHeight, kWidth), 0) << "a turned picture would have had it";
}

TEST_F(TileItemsTest, TooManyTilesAreRefusedBeforeAnyWork) {
  const auto call = Call(models::TileRules{.size = 1}, Counted(64, 17));
  const absl::Status status = Make(*call);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("into 1088 tiles of 1 with an overlap of 0; expected at most 1024"));
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);
}

TEST_F(TileItemsTest, MoreTilesThanTheQueueEverHoldsAreInvalid) {
  max_items_ = 6;
  EXPECT_TRUE(Make(*Call(models::TileRules{.size = 10, .overlap = 2})).ok());
  max_items_ = 5;
  const auto call = Call(models::TileRules{.size = 10, .overlap = 2});
  const absl::Status status = Make(*call);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("cut the picture of 23 x 17 into 6 tiles of 10 with an overlap of 2; expected at "
                      "most 5, because the queue"),
            HasSubstr("raise --max-queue-size")));
  EXPECT_EQ(admission_->inflight().decoded_bytes, 0);
  // A model's own tiles are refused likewise, and a picture that is not cut is left to the queue.
  EXPECT_FALSE(Make(*Call(std::nullopt), {.size = 10, .overlap = 2}).ok());
  max_items_ = 0;
  EXPECT_TRUE(Make(*Call(std::nullopt), {.size = 64}).ok());
}

TEST_F(TileItemsTest, TilesOfEarlierPicturesTakeRoomToo) {
  max_items_ = 11;
  Request request;
  request.input = std::vector<Picture>{Counted(), Counted()};
  request.tiles = models::TileRules{.size = 10, .overlap = 2};
  request.input_name = "raw";
  const auto call = Call(std::move(request));
  EXPECT_THAT(std::string(Make(*call).message()),
              HasSubstr("expected at most 5 beside the 6 of earlier pictures"));
  max_items_ = 12;
  Request fits;
  fits.input = std::vector<Picture>{Counted(), Counted()};
  fits.tiles = models::TileRules{.size = 10, .overlap = 2};
  fits.input_name = "raw";
  EXPECT_TRUE(Make(*Call(std::move(fits))).ok());
}

TEST_F(TileItemsTest, AllTilesAreChargedBeforeThePictureIsDecoded) {
  auto call = Call(models::TileRules{.size = 10, .overlap = 2});
  ASSERT_TRUE(Make(*call).ok());
  EXPECT_EQ(admission_->inflight().decoded_bytes, 3 * kWidth * kHeight + 6 * (10 * 10 * (3 * 4 + 2)));
  // Its ticket refers to the admission.
  call.reset();
  admission_ = *Admission::Create({.max_decoded_bytes = 3 * kWidth * kHeight + 6000}, Clock::Real());
  const auto refused = Call(models::TileRules{.size = 10, .overlap = 2});
  // More than the bound itself, so a later attempt would not fit either.
  EXPECT_EQ(Make(*refused).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(refused->items().empty());
}

// Tiles are scaled one after the other.
TEST_F(TileItemsTest, TheWeightsOfVeryLongTilesAreChargedOnce) {
  const models::TileRules tiles = {.size = 500'000, .overlap = 0};
  const Picture picture = Counted(1'000'000, 1);
  admission_ = *Admission::Create({.max_decoded_bytes = 8 << 20}, Clock::Real());
  EXPECT_THAT(std::string(Make(*Call(tiles, picture)).message()), HasSubstr("--max-decoded-bytes"));
  admission_ = *Admission::Create({.max_decoded_bytes = 10 << 20}, Clock::Real());
  const auto call = Call(tiles, picture);
  const absl::Status made = Make(*call);
  EXPECT_TRUE(made.ok()) << made;
  EXPECT_EQ(call->items().size(), 2u);
}

TEST_F(TileItemsTest, WhatNeedsTheWholePictureIsRefused) {
  Request request;
  request.explain.emplace();
  description_.task = models::Task::kDetection;
  const absl::Status explained = CheckTiles(request, "m", description_, {.size = 10});
  EXPECT_EQ(BadFieldOf(explained), "explain");
  description_.task = models::Task::kClassification;
  const absl::Status classes = CheckTiles(Request(), "m", description_, {.size = 10});
  EXPECT_THAT(std::string(classes.message()), HasSubstr("the task of model 'm' is classification"));
  EXPECT_TRUE(CheckTiles(Request(), "m", description_, {}).ok());
}

}  // namespace
}  // namespace saccade::server
