#include "server/engine/wrong_item.h"

#include <limits>
#include <string_view>
#include <vector>

#include "gtest/gtest.h"
#include "server/core/wrong_values.h"

namespace saccade::server {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
const models::Failure kFailure = {.message = "the input is not finite", .of_input = true};

std::string_view BytesOf(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(WrongItemTest, NamesTheElementOfATensorAsItWasSent) {
  std::vector<float> values(2 * 3 * 4);
  values[1 * 12 + 2 * 4 + 3] = -kInfinity;
  Request request;
  request.input_name = "input 'image'";
  request.input = TensorInput{.shape = {8, 2, 3, 4}, .data = {}};
  // In two pieces that do not end between two values.
  const std::string_view bytes = BytesOf(values);
  BytePieces pieces(bytes.substr(0, 37));
  pieces.Add(bytes.substr(37));
  const Item item{.placement = {}, .pixels = pieces};
  const absl::Status wrong = WrongItem(request, {}, item, 5, kFailure);
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(
      wrong.message(),
      "input 'image': holds a value that is not finite (-infinity) at element [5,1,2,3]; expected finite "
      "numbers");
  EXPECT_TRUE(HasWrongValues(wrong));
}

TEST(WrongItemTest, NamesTheVoxelOfAVolume) {
  std::vector<float> values(2 * 70 * 80);
  values[1 * 5600 + 69 * 80 + 3] = std::numeric_limits<float>::quiet_NaN();
  values.back() = kInfinity;
  Request request;
  request.input_name = "volume";
  request.input = std::vector<Picture>(1);
  models::ImageInput input;
  input.medium = models::Medium::kVolume;
  const Item item{.placement = models::PlacementOfVolume({70, 80}, 2), .pixels = absl::MakeConstSpan(values)};
  EXPECT_EQ(WrongItem(request, input, item, 0, kFailure).message(),
            "volume: holds a value that is not finite (NaN) at element [1,69,3]; expected finite numbers");
  request.input = std::vector<Picture>(3);
  EXPECT_EQ(WrongItem(request, input, item, 2, kFailure).message(),
            "volume: volume 2: holds a value that is not finite (NaN) at element [1,69,3]; expected finite "
            "numbers");
}

TEST(WrongItemTest, OtherwiseSaysWhatTheModelSays) {
  Request request;
  request.input_name = "encoded";
  request.input = std::vector<Picture>(1);
  const std::vector<float> values = {kInfinity};
  const Item item{.placement = {}, .pixels = absl::MakeConstSpan(values)};
  const absl::Status wrong = WrongItem(request, {}, item, 0, kFailure);
  EXPECT_EQ(wrong.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(wrong.message(), "encoded: the input is not finite");
}

}  // namespace
}  // namespace saccade::server
