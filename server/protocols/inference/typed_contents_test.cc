#include "server/protocols/inference/typed_contents.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

std::string Flat(const absl::StatusOr<BytePieces>& bytes) {
  if (!bytes.ok()) return bytes.status().ToString();
  std::string flat(bytes->size(), ' ');
  bytes->CopyTo(flat.data());
  return flat;
}

TEST(TypedContentsTest, OfTheirOwnWidthStayWhereTheyAre) {
  inference::InferTensorContents contents;
  contents.add_fp32_contents(1);
  const auto bytes = BytesOf(contents, DataType::kFp32);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(bytes->pieces()[0].data(), reinterpret_cast<const char*>(contents.fp32_contents().data()));
}

TEST(TypedContentsTest, NarrowerOnesAreNarrowed) {
  inference::InferTensorContents contents;
  for (const int value : {-128, 0, 127}) contents.add_int_contents(value);
  EXPECT_EQ(Flat(BytesOf(contents, DataType::kInt8)), std::string("\x80\0\x7f", 3));
  EXPECT_EQ(Flat(BytesOf(contents, DataType::kInt16)), std::string("\x80\xff\0\0\x7f\0", 6));
  contents.add_int_contents(128);
  EXPECT_THAT(Flat(BytesOf(contents, DataType::kInt8)),
              HasSubstr("element 3 is 128, which is out of range for INT8; expected -128 to 127"));
  inference::InferTensorContents large;
  large.add_uint_contents(65536);
  EXPECT_THAT(Flat(BytesOf(large, DataType::kUint16)), HasSubstr("expected 0 to 65535"));
  inference::InferTensorContents low;
  low.add_int_contents(-32769);
  EXPECT_THAT(Flat(BytesOf(low, DataType::kInt16)), HasSubstr("is -32769, which is out of range for INT16"));
}

TEST(TypedContentsTest, TextsGetTheirLengths) {
  inference::InferTensorContents contents;
  contents.add_bytes_contents("ab");
  EXPECT_EQ(Flat(BytesOf(contents, DataType::kBytes)), std::string("\2\0\0\0ab", 6));
}

TEST(TypedContentsTest, AnotherTypesFieldIsRefused) {
  inference::InferTensorContents contents;
  contents.add_fp64_contents(1);
  EXPECT_THAT(Flat(BytesOf(contents, DataType::kFp32)),
              HasSubstr("than that of FP32, which is fp32_contents"));
  EXPECT_THAT(Flat(BytesOf(contents, DataType::kUint8)),
              HasSubstr("than that of UINT8, which is uint_contents"));
  EXPECT_THAT(Flat(BytesOf(contents, DataType::kInt16)),
              HasSubstr("than that of INT16, which is int_contents"));
  EXPECT_THAT(Flat(BytesOf(contents, DataType::kBytes)),
              HasSubstr("than that of BYTES, which is bytes_contents"));
  EXPECT_THAT(Flat(BytesOf(contents, DataType::kFp16)), HasSubstr("raw_input_contents"));
}

TEST(TypedContentsTest, EveryTypeReadsItsField) {
  inference::InferTensorContents all;
  EXPECT_EQ(Flat(BytesOf(all, DataType::kBf16)), "") << "of an empty tensor";
  const auto only = [](auto add) {
    inference::InferTensorContents contents;
    add(contents);
    return contents;
  };
  EXPECT_EQ(BytesOf(only([](auto& c) { c.add_bool_contents(true); }), DataType::kBool)->size(), 1u);
  EXPECT_EQ(BytesOf(only([](auto& c) { c.add_uint_contents(1); }), DataType::kUint8)->size(), 1u);
  EXPECT_EQ(BytesOf(only([](auto& c) { c.add_uint_contents(1); }), DataType::kUint32)->size(), 4u);
  EXPECT_EQ(BytesOf(only([](auto& c) { c.add_uint64_contents(1); }), DataType::kUint64)->size(), 8u);
  EXPECT_EQ(BytesOf(only([](auto& c) { c.add_int_contents(1); }), DataType::kInt32)->size(), 4u);
  EXPECT_EQ(BytesOf(only([](auto& c) { c.add_int64_contents(1); }), DataType::kInt64)->size(), 8u);
  EXPECT_EQ(BytesOf(only([](auto& c) { c.add_fp64_contents(1); }), DataType::kFp64)->size(), 8u);
}

}  // namespace
}  // namespace saccade::server
