#include "server/core/tensor.h"

#include <gtest/gtest.h>

namespace saccade::server {
namespace {

TEST(TensorTest, EveryTypeHasItsName) {
  for (int i = 0; i <= static_cast<int>(DataType::kBf16); ++i) {
    const auto type = static_cast<DataType>(i);
    EXPECT_EQ(DataTypeOf(NameOf(type)), type);
  }
  EXPECT_STREQ(NameOf(DataType::kBf16), "BF16");
  EXPECT_EQ(SizeOf(DataType::kBf16), 2u);
  EXPECT_EQ(SizeOf(DataType::kBytes), 0u);
  EXPECT_FALSE(DataTypeOf("fp32"));
}

TEST(TensorTest, ElementsAreCountedWithinBounds) {
  EXPECT_EQ(*ElementCount({}), 1);
  EXPECT_EQ(*ElementCount({2, 3}), 6);
  EXPECT_EQ(*ElementCount({int64_t{1} << 40, 0}), 0);
  EXPECT_FALSE(ElementCount({-1}).ok());
  EXPECT_FALSE(ElementCount({int64_t{1} << 40, 2}).ok());
  EXPECT_FALSE(ElementCount({int64_t{1} << 62, int64_t{1} << 62}).ok());
}

TEST(TensorTest, BytesAreAsManyAsShapeAndTypeSay) {
  Tensor tensor{.name = "x", .type = DataType::kInt16, .shape = {2}, .data = BytePieces("four")};
  EXPECT_TRUE(CheckBytes(tensor).ok());
  tensor.shape = {3};
  EXPECT_EQ(CheckBytes(tensor).message(), "holds 4 bytes; INT16 of shape [3] is 6");
  tensor.type = DataType::kBytes;
  EXPECT_TRUE(CheckBytes(tensor).ok()) << "whoever splits them finds out";
}

}  // namespace
}  // namespace saccade::server
