#include "server/engine/cut_parts.h"

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/pictures/testing/tiff_fixtures.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

constexpr int kWidth = 7;
constexpr int kHeight = 5;

// Each byte is its own index.
Picture Counted() {
  auto pixels = std::make_shared<std::string>(size_t{3} * kWidth * kHeight, '\0');
  for (size_t i = 0; i < pixels->size(); ++i) (*pixels)[i] = static_cast<char>(i);
  const std::string_view view = *pixels;
  return RawPicture{
      .width = kWidth, .height = kHeight, .rgb = true, .data = {.owner = std::move(pixels), .bytes = view}};
}

class CutPartsTest : public ::testing::Test {
 protected:
  absl::StatusOr<std::vector<RawPicture>> Cut(
      const std::vector<Region>& regions, const StillWanted& wanted = [] { return absl::OkStatus(); }) {
    return CutParts(Counted(), regions, models::ImageInput(), ThreadDecoder(DecodeLimits()), ticket_, wanted);
  }

  // Room for the picture and as many pixels again.
  std::unique_ptr<Admission> admission_ =
      *Admission::Create({.max_decoded_bytes = int64_t{2} * 3 * kWidth * kHeight}, Clock::Real());
  Admission::Ticket ticket_ = *admission_->Admit({.bytes = 0});
};

TEST(CutPartsOfLargePicturesTest, AreReadOneByOne) {
  const std::string tiff = Tiff({}, 300, 200);
  const Picture picture = EncodedPicture{.data = {.owner = nullptr, .bytes = tiff}};
  // Less than a tenth of what the whole picture takes.
  const auto admission = *Admission::Create({.max_decoded_bytes = 16'000}, Clock::Real());
  Admission::Ticket ticket = *admission->Admit({.bytes = 0});
  const ThreadDecoder decoder({.max_pixels = 10'000, .max_bytes = 1 << 24});
  const StillWanted wanted = [] { return absl::OkStatus(); };
  const std::vector<Region> regions = {{.x = 250, .y = 150, .width = 50, .height = 40},
                                       {.x = 0, .y = 0, .width = 2, .height = 1}};
  const auto parts = CutParts(picture, regions, models::ImageInput(), decoder, ticket, wanted);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].width, 50);
  ASSERT_EQ((*parts)[0].data.bytes.size(), size_t{3} * 50 * 40);
  const int red = (*parts)[0].rgb ? 0 : 2;
  EXPECT_EQ(static_cast<uint8_t>((*parts)[0].data.bytes[red]), ValueAt(250, 150, 0));
  EXPECT_EQ(static_cast<uint8_t>((*parts)[1].data.bytes[3 + red]), ValueAt(1, 0, 0));
  EXPECT_EQ(CutParts(picture, {{.x = 260, .y = 0, .width = 50, .height = 5}}, models::ImageInput(), decoder,
                     ticket, wanted)
                .status()
                .code(),
            absl::StatusCode::kInternal);
}

TEST_F(CutPartsTest, APartHasThePixelsOfItsRegion) {
  const std::vector<Region> regions = {{.x = 2, .y = 1, .width = 3, .height = 2},
                                       {.x = kWidth - 1, .y = kHeight - 1, .width = 1, .height = 1}};
  const auto parts = Cut(regions);
  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), regions.size());
  for (size_t i = 0; i < regions.size(); ++i) {
    const Region& region = regions[i];
    const RawPicture& part = (*parts)[i];
    EXPECT_TRUE(part.rgb);
    EXPECT_EQ(part.width, region.width);
    EXPECT_EQ(part.height, region.height);
    std::string expected;
    for (int y = region.y; y < region.y + region.height; ++y) {
      for (int byte = 3 * region.x; byte < 3 * (region.x + region.width); ++byte)
        expected.push_back(static_cast<char>(3 * kWidth * y + byte));
    }
    EXPECT_EQ(part.data.bytes, expected);
  }
}

TEST_F(CutPartsTest, PartsAreChargedBeforeTheyTakeMemory) {
  const Region whole{.x = 0, .y = 0, .width = kWidth, .height = kHeight};
  EXPECT_TRUE(Cut({whole}).ok());
  ticket_ = *admission_->Admit({.bytes = 0});
  // The first is everything that there is room for.
  EXPECT_FALSE(Cut({whole, {.x = 0, .y = 0, .width = 1, .height = 1}}).ok());
}

TEST_F(CutPartsTest, ARegionBeyondThePictureIsRefused) {
  for (const Region& region : std::vector<Region>{{.x = -1, .y = 0, .width = 2, .height = 2},
                                                  {.x = 0, .y = 4, .width = 2, .height = 2},
                                                  {.x = 6, .y = 0, .width = 2147483647, .height = 1},
                                                  {.x = 0, .y = 0, .width = 0, .height = 1}}) {
    const auto parts = Cut({region});
    EXPECT_EQ(parts.status().code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(parts.status().message()), HasSubstr("is not within the picture of 7 x 5"));
    ticket_ = *admission_->Admit({.bytes = 0});
  }
}

TEST_F(CutPartsTest, NothingIsCutForARequestThatHasEnded) {
  const auto parts = Cut({{.x = 0, .y = 0, .width = 1, .height = 1}},
                         [] { return absl::CancelledError("the client has gone"); });
  EXPECT_EQ(parts.status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace saccade::server
