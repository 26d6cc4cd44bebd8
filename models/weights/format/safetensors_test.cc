#include "models/weights/format/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "models/api/error.h"
#include "models/weights/format/testing/files.h"

namespace saccade::models {
namespace {

using ::testing::AllOf;
using testing::AsBytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::Little;
using testing::Safetensors;

// Returns the error's text, or "" if there is none.
std::string Error(const std::string& file) {
  try {
    ParseSafetensors(AsBytes(file));
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

// Returns a file whose header is an object with these members.
std::string File(const std::string& members, const std::string& data) {
  std::string header;
  header.append("{").append(members).append("}");
  return Safetensors(header, data);
}

std::string Tensor(const std::string& name, const std::string& dtype, const std::string& shape, int64_t begin,
                   int64_t end) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[" +
         std::to_string(begin) + "," + std::to_string(end) + "]}";
}

TEST(Safetensors, ReadsTensors) {
  const std::string file = testing::SmallSafetensors();
  const std::vector<TensorEntry> entries = ParseSafetensors(AsBytes(file));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].type, ElementType::kF32);
  EXPECT_THAT(entries[0].shape, ElementsAre(2, 3));
  EXPECT_THAT(entries[0].strides, ElementsAre(3, 1));
  EXPECT_EQ(entries[1].data - entries[0].data, 24);
  EXPECT_TRUE(entries[1].shape.empty());
}

TEST(Safetensors, ReadsEmptyTensorsAndEmptyFiles) {
  EXPECT_TRUE(ParseSafetensors(AsBytes(Safetensors("{}", ""))).empty());
  EXPECT_EQ(Error(File(Tensor("a", "F32", "[0,4]", 0, 0), "")), "");
}

TEST(Safetensors, RefusesEveryPrefix) {
  const std::string file = testing::SmallSafetensors();
  for (size_t length = 0; length < file.size(); ++length) {
    EXPECT_NE(Error(file.substr(0, length)), "") << length;
  }
}

TEST(Safetensors, RefusesHugeHeaders) {
  EXPECT_THAT(Error(Little(~uint64_t{0}, 8) + "{}"), HasSubstr("at most 100000000"));
  EXPECT_THAT(Error(Little(100'000'000, 8) + "{}"), HasSubstr("cut short"));
}

TEST(Safetensors, RefusesTrailingBytesHolesAndOverlaps) {
  const std::string a = Tensor("a", "F32", "[2]", 0, 8);
  EXPECT_THAT(Error(File(a, std::string(9, 'x'))), HasSubstr("take 8 bytes, but the file has 9"));
  EXPECT_THAT(Error(File(a + "," + Tensor("b", "F32", "[2]", 4, 12), std::string(12, 'x'))),
              AllOf(HasSubstr("'b'"), HasSubstr("overlap")));
  EXPECT_THAT(Error(File(a + "," + Tensor("b", "F32", "[2]", 12, 20), std::string(20, 'x'))),
              AllOf(HasSubstr("'b'"), HasSubstr("gap")));
  EXPECT_THAT(Error(File(Tensor("a", "F32", "[2]", 4, 12), std::string(12, 'x'))), HasSubstr("gap"));
}

TEST(Safetensors, RefusesBadOffsets) {
  const std::string data(8, 'x');
  EXPECT_THAT(Error(File(Tensor("a", "F32", "[2]", 8, 0), data)), HasSubstr("end before"));
  EXPECT_THAT(Error(File(Tensor("a", "F32", "[2]", 4, 12), data)), HasSubstr("beyond the 8 bytes"));
  EXPECT_THAT(Error(File(Tensor("a", "F32", "[3]", 0, 8), data)),
              AllOf(HasSubstr("'a'"), HasSubstr("takes 12 bytes"), HasSubstr("hold 8")));
  EXPECT_THAT(Error(Safetensors(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0]}})", data)),
              HasSubstr("[begin, end]"));
}

TEST(Safetensors, RefusesShapesThatOverflow) {
  for (const char* shape : {"[4611686018427387904,2]", "[9223372036854775807]", "[3037000500,3037000500,4]",
                            "[9223372036854775807,9223372036854775807,0]"}) {
    EXPECT_THAT(Error(File(Tensor("a", "F32", shape, 0, 0), "")), HasSubstr("too large")) << shape;
  }
  EXPECT_THAT(Error(File(Tensor("a", "F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", 0, 4), "1234")),
              HasSubstr("more than 16"));
}

TEST(Safetensors, RefusesUnknownTypesAndFields) {
  EXPECT_THAT(Error(File(Tensor("a", "F31", "[]", 0, 4), "1234")),
              AllOf(HasSubstr("'F31'"), HasSubstr("BF16")));
  EXPECT_THAT(Error(Safetensors(R"({"a":{"dtype":"F32","shape":[],"offsets":[0,4]}})", "1234")),
              HasSubstr("'offsets'"));
  EXPECT_THAT(
      Error(Safetensors(R"({"a":{"dtype":"F32","dtype":"F32","shape":[],"data_offsets":[0,4]}})", "1234")),
      HasSubstr("or a duplicate"));
  EXPECT_THAT(
      Error(Safetensors(R"({"a":{"dtype":"F32","shape":[],"shape":[],"data_offsets":[0,4]}})", "1234")),
      HasSubstr("'shape' is unknown or a duplicate"));
  EXPECT_THAT(
      Error(Safetensors(R"({"a":{"dtype":"F32","data_offsets":[0,4],"data_offsets":[0,4]}})", "1234")),
      HasSubstr("'data_offsets' is unknown or a duplicate"));
  EXPECT_THAT(Error(Safetensors(R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", "1234")),
              HasSubstr("missing"));
  EXPECT_THAT(Error(Safetensors(R"({"a":{"dtype":"F32","shape":[]}})", "")), HasSubstr("missing"));
}

TEST(Safetensors, RefusesDuplicateNames) {
  const std::string a = Tensor("a", "F32", "[]", 0, 4);
  EXPECT_THAT(Error(File(a + "," + a, "1234")), HasSubstr("'a': it is in the header twice"));
  EXPECT_THAT(Error(Safetensors(R"({"__metadata__":{"k":"1","k":"2"}})", "")), HasSubstr("'k' twice"));
}

TEST(Safetensors, RefusesWhatIsNotJson) {
  for (const char* header : {" {}", "[]", "{", "{}}", "{,}", R"({"a"})", R"({"a":1})",
                             R"({"__metadata__":{"k":1}})", "{\"\xFF\":{}}", R"({"a":{}})"}) {
    EXPECT_NE(Error(Safetensors(header, "")), "") << header;
  }
}

TEST(Safetensors, QuotesHostileNames) {
  const std::string error = Error(File(Tensor("\\u001b[2J", "F31", "[]", 0, 4), "1234"));
  EXPECT_THAT(error, HasSubstr("'\\x1b[2J'"));
}

TEST(SafetensorsTest, TheMetadataAreTexts) {
  const auto metadata = [](const std::string& header) {
    const std::string file = Safetensors(header, "");
    return SafetensorsMetadata(AsBytes(file));
  };
  EXPECT_TRUE(metadata("{}").empty());
  EXPECT_EQ(metadata(R"({"__metadata__":{"format":"pt","a":"\u00e9"}})"),
            (std::map<std::string, std::string>{{"a", "\xC3\xA9"}, {"format", "pt"}}));
}

}  // namespace
}  // namespace saccade::models
