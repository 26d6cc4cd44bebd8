#include "models/weights/format/state_dict.h"

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
using testing::PickledDict;
using testing::PickledInt;
using testing::PickledTensor;
using testing::PickledText;
using testing::Zip;

std::string Error(const std::string& file) {
  try {
    ParseStateDict(AsBytes(file));
    return "";
  } catch (const LoadError& error) {
    return error.what();
  }
}

// Returns a file with this pickle and a storage '0' of six floats.
std::string WithPickle(const std::string& pickle) {
  return Zip({{"w/data.pkl", pickle}, {"w/data/0", std::string(24, '\x01')}});
}

std::string WithTensor(int32_t elements, int32_t offset, const std::vector<int32_t>& shape,
                       const std::vector<int32_t>& strides) {
  return WithPickle(
      PickledDict({{"a", PickledTensor("FloatStorage", "0", elements, offset, shape, strides)}}));
}

TEST(StateDict, ReadsTensors) {
  const std::string file = testing::SmallStateDict();
  const std::vector<TensorEntry> entries = ParseStateDict(AsBytes(file));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_EQ(entries[0].type, ElementType::kF32);
  EXPECT_THAT(entries[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(*entries[0].data, std::byte{1});
  EXPECT_EQ(entries[1].type, ElementType::kI64);
  EXPECT_EQ(*entries[1].data, std::byte{2});
}

// The authors of PSMNet published three of their four files in this format.
TEST(SavedStream, ReadsTensors) {
  const std::string file = testing::SmallSavedStream();
  const std::vector<TensorEntry> entries = ParseStateDict(AsBytes(file));
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(entries[0].name, "a");
  EXPECT_THAT(entries[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(*entries[0].data, std::byte{1});
  EXPECT_EQ(entries[1].type, ElementType::kI64);
  EXPECT_EQ(entries[1].data, AsBytes(file).data() + file.size() - 8);
}

TEST(SavedStream, RefusesEveryPrefixAndWhatFollows) {
  const std::string file = testing::SmallSavedStream();
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(Error(file.substr(0, length)), "") << length;
  EXPECT_THAT(Error(file + "x"), HasSubstr("data after its last storage"));
}

std::string ShortText(const std::string& text) { return "U" + Little(text.size(), 1) + text; }

// A tensor as PyTorch 0.4 pickled it in Python 2: short strings, and a sixth part of the storage's name.
std::string OldTensor(const std::string& view, const std::string& function, const std::string& more) {
  return "ctorch._utils\n" + function + "\n((" + ShortText("storage") + "ctorch\nFloatStorage\n" +
         ShortText("0") + ShortText("cuda:0") + PickledInt(6) + view + "tQK" + Little(0, 1) +
         testing::PickledTuple({6}) + testing::PickledTuple({1}) + more + "tR";
}

std::string OldFile(const std::string& tensor) {
  const std::string items = "](](" + ShortText("a") + tensor + "ee";
  return testing::SavedStream(
      "\x80\x02}" + ShortText("state_dict") + "ccollections\nOrderedDict\n" + items + "\x85Rs.",
      {{"0", 6, std::string(24, '\x01')}});
}

TEST(SavedStream, ReadsPython2) {
  const std::string hooks = "\x89" + std::string("ccollections\nOrderedDict\n]\x85R");
  for (const std::string& file : {OldFile(OldTensor("N", "_rebuild_tensor_v2", hooks)),
                                  OldFile(OldTensor("N", "_rebuild_tensor", ""))}) {
    const std::vector<TensorEntry> entries = ParseStateDict(AsBytes(file));
    ASSERT_EQ(entries.size(), 1U);
    EXPECT_EQ(entries[0].name, "a");
  }
  EXPECT_THAT(Error(OldFile(OldTensor(testing::PickledTuple({0, 1, 2}), "_rebuild_tensor", ""))),
              AllOf(HasSubstr("view of another"), HasSubstr("save it again")));
}

TEST(SavedStream, RefusesStoragesThatDoNotFit) {
  const std::string pickle = PickledDict({{"a", PickledTensor("FloatStorage", "0", 6, 0, {6}, {1})}});
  const std::string bytes(24, '\x01');
  using testing::SavedStream;
  EXPECT_EQ(Error(SavedStream(pickle, {{"0", 6, bytes}})), "");
  EXPECT_THAT(Error(SavedStream(pickle, {{"0", 5, bytes}})), HasSubstr("should hold 6 elements"));
  EXPECT_THAT(Error(SavedStream(pickle, {{"0", 6, bytes.substr(1)}})), HasSubstr("cut short"));
  EXPECT_THAT(Error(SavedStream(pickle, {{"0", uint64_t{1} << 62, bytes}})), HasSubstr("should hold 6"));
  EXPECT_THAT(Error(SavedStream(pickle, {})), HasSubstr("lacks its storage '0'"));
  EXPECT_THAT(Error(SavedStream(pickle, {{"1", 6, bytes}})), HasSubstr("which no tensor has"));
  EXPECT_THAT(Error(SavedStream(pickle, {{"0", 6, bytes}, {"0", 6, bytes}})), HasSubstr("occurs twice"));
  const std::string twice = PickledDict({{"a", PickledTensor("FloatStorage", "0", 6, 0, {6}, {1})},
                                         {"b", PickledTensor("DoubleStorage", "0", 6, 0, {6}, {1})}});
  EXPECT_THAT(Error(SavedStream(twice, {{"0", 6, bytes}})), HasSubstr("two types or sizes"));
}

TEST(SavedStream, RefusesOtherMachinesAndOtherPickles) {
  std::string big = testing::SmallSavedStream();
  big.replace(big.find('\x88'), 1, "\x89");
  EXPECT_THAT(Error(big), HasSubstr("'big'"));
  EXPECT_THAT(Error("\x80\x02}."), HasSubstr("torch.save did not write"));
  EXPECT_THAT(Error(testing::SavedStream("\x80\x02"
                                         "cos\nsystem\n(" +
                                             PickledText("true") + "tR.",
                                         {})),
              HasSubstr("'os.system'"));
}

// An ordered dict is copied from its list, so that few bytes could ask for much memory.
TEST(SavedStream, BoundsCopiesOfOneList) {
  std::string pickle = "\x80\x02](";
  for (int i = 0; i < 100'000; ++i) pickle += i == 0 ? "NN\x86q\x01" : "h\x01";
  pickle += "e\x85q\x02";
  for (int i = 0; i < 1000; ++i) pickle += "ccollections\nOrderedDict\nh\x02R";
  EXPECT_THAT(Error(testing::SavedStream(pickle + ".", {})), HasSubstr("more than 2000000 values"));
}

TEST(StateDict, SaysThatAProgramIsNone) {
  EXPECT_THAT(
      Error(Zip({{"w/data.pkl", ""}, {"w/code/__torch__.py", ""}, {"w/constants.pkl", ""}})),
      AllOf(HasSubstr("TorchScript program"), HasSubstr("name it model.pt and set backend: \"pytorch\"")));
  EXPECT_THAT(Error(Zip({{"w/archive_format", "pt2"}, {"w/models/model.json", ""}})),
              AllOf(HasSubstr("torch.export"), HasSubstr("name the package model.pt2")));
}

TEST(StateDict, ReadsStridedViews) {
  const std::string file = WithTensor(6, 1, {2, 2}, {1, 2});
  const std::vector<TensorEntry> entries = ParseStateDict(AsBytes(file));
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_THAT(entries[0].strides, ElementsAre(1, 2));
}

TEST(StateDict, ReadsTheStateDictOfACheckpoint) {
  const std::string inner = "}" + PickledText("a") + PickledTensor("FloatStorage", "0", 6, 0, {6}, {1}) + "s";
  const std::string file = WithPickle(PickledDict({{"epoch", PickledInt(3)}, {"state_dict", inner}}));
  ASSERT_EQ(ParseStateDict(AsBytes(file)).size(), 1U);
}

TEST(StateDict, RefusesEveryPrefix) {
  const std::string file = testing::SmallStateDict();
  for (size_t length = 0; length < file.size(); ++length)
    EXPECT_NE(Error(file.substr(0, length)), "") << length;
}

TEST(StateDict, RefusesEveryPrefixOfThePickle) {
  const std::string pickle = PickledDict({{"a", PickledTensor("FloatStorage", "0", 6, 0, {2, 3}, {3, 1})}});
  EXPECT_EQ(Error(WithPickle(pickle)), "");
  for (size_t length = 0; length < pickle.size(); ++length) {
    EXPECT_NE(Error(WithPickle(pickle.substr(0, length))), "") << length;
  }
  EXPECT_NE(Error(WithPickle(pickle + ".")), "");
}

TEST(StateDict, RefusesTensorsBeyondTheirStorage) {
  EXPECT_EQ(Error(WithTensor(6, 0, {2, 3}, {3, 1})), "");
  EXPECT_THAT(Error(WithTensor(6, 1, {2, 3}, {3, 1})),
              AllOf(HasSubstr("'a'"), HasSubstr("beyond its storage")));
  EXPECT_THAT(Error(WithTensor(6, 0, {2, 3}, {4, 1})), HasSubstr("beyond its storage"));
  EXPECT_THAT(Error(WithTensor(6, 7, {0}, {1})), HasSubstr("beyond its storage"));
  EXPECT_THAT(Error(WithTensor(7, 0, {2, 3}, {3, 1})), HasSubstr("should hold 7 elements"));
  EXPECT_THAT(Error(WithTensor(6, 0, {2000000000, 2000000000, 2000000000}, {1, 1, 1})),
              HasSubstr("too large"));
  EXPECT_THAT(Error(WithTensor(6, 0, {2000000000, 2}, {2000000000, 2000000000})),
              HasSubstr("beyond its storage"));
  EXPECT_THAT(Error(WithTensor(6, 0, {1000}, {0})), HasSubstr("repeats"));
  EXPECT_THAT(Error(WithTensor(6, 0, {2, 3}, {1})), HasSubstr("strides"));
  EXPECT_THAT(Error(WithTensor(6, -1, {2}, {1})), HasSubstr("negative"));
  EXPECT_THAT(Error(WithTensor(6, 0, {-2}, {1})), HasSubstr("negative"));
  EXPECT_THAT(Error(WithTensor(6, 5, {2}, {-1})), HasSubstr("negative"));
}

TEST(StateDict, RefusesOtherGlobalsByName) {
  EXPECT_THAT(Error(WithPickle("\x80\x02"
                               "cos\nsystem\n(" +
                               PickledText("true") + "tR.")),
              AllOf(HasSubstr("'os.system'"), HasSubstr("safetensors")));
  EXPECT_THAT(Error(WithPickle("\x80\x02"
                               "cbuiltins\neval\n.")),
              HasSubstr("'builtins.eval'"));
  EXPECT_THAT(Error(WithPickle("\x80\x02"
                               "ctorch\nUntypedStorage\n.")),
              HasSubstr("'torch.UntypedStorage'"));
}

TEST(StateDict, RefusesUnknownOpcodesAndProtocols) {
  EXPECT_THAT(Error(WithPickle("\x80\x04}.")), HasSubstr("protocol 4"));
  EXPECT_THAT(Error(WithPickle("\x80\x02i.")), HasSubstr("opcode 105"));
}

TEST(StateDict, RefusesStacksThatDoNotWorkOut) {
  for (const char* code :
       {".", "t.", "u.", "}u.", "}(Nu.", "R.", "NQ.", "Nb.", "h\x07.", "}(Ns.", "))R.", "q\x01."}) {
    EXPECT_NE(Error(WithPickle(std::string("\x80\x02").append(code))), "") << code;
  }
}

TEST(StateDict, SurvivesDeepNestsAndCycles) {
  std::string deep = "\x80\x02N";
  deep.append(1'000'000, '\x85');
  EXPECT_THAT(Error(WithPickle(deep + ".")), HasSubstr("dict of tensors"));
  EXPECT_THAT(Error(WithPickle("\x80\x02}q\x01X" + Little(1, 4) + "ah\x01s.")),
              HasSubstr("'a' is not a tensor"));
  std::string recalls = "\x80\x02Nq\x01";
  for (int i = 0; i < 2'100'000; ++i) recalls += "h\x01";
  EXPECT_THAT(Error(WithPickle(recalls + ".")), HasSubstr("too deep"));
}

TEST(StateDict, RefusesDictsOfOtherThings) {
  EXPECT_THAT(Error(WithPickle(PickledDict({{"a", PickledInt(1)}}))), HasSubstr("'a' is not a tensor"));
  EXPECT_THAT(Error(WithPickle("\x80\x02N.")), HasSubstr("dict of tensors"));
  const std::string tensor = PickledTensor("FloatStorage", "0", 6, 0, {6}, {1});
  EXPECT_THAT(Error(WithPickle(PickledDict({{"a", tensor}, {"a", tensor}}))), HasSubstr("twice"));
  EXPECT_THAT(Error(WithPickle(PickledDict({{"a", PickledTensor("FloatStorage", "9", 6, 0, {6}, {1})}}))),
              HasSubstr("lacks its storage '9'"));
}

TEST(StateDict, RefusesBigEndianFiles) {
  EXPECT_THAT(Error(Zip({{"w/data.pkl", PickledDict({})}, {"w/byteorder", "big"}})), HasSubstr("'big'"));
}

TEST(StateDict, RefusesOtherArchives) {
  EXPECT_THAT(Error(Zip({{"readme", "x"}})), HasSubstr("data.pkl"));
  EXPECT_THAT(Error(Zip({{"w/x", "x"}, {"w/x", "x"}})), HasSubstr("twice"));
  std::string compressed = testing::SmallStateDict();
  compressed[compressed.find("PK\x01\x02") + 10] = 8;
  EXPECT_THAT(Error(compressed), HasSubstr("compressed"));
  std::string misplaced = testing::SmallStateDict();
  misplaced[misplaced.find("PK\x01\x02") + 42] = 1;
  EXPECT_THAT(Error(misplaced), HasSubstr("no header where the directory points"));
}

TEST(StateDict, RefusesArchivesBeyondFourGibibytes) {
  // Offset, size and number of entries of the directory: all ones mean that a larger field has the value.
  for (const size_t from_end : {size_t{6}, size_t{10}}) {
    std::string file = testing::SmallStateDict();
    file.replace(file.size() - from_end, 4, "\xFF\xFF\xFF\xFF");
    EXPECT_THAT(Error(file), HasSubstr("beyond 4 GiB; save such weights as safetensors")) << from_end;
  }
}

TEST(StateDict, RefusesTwoPickles) {
  EXPECT_THAT(Error(Zip({{"v/data.pkl", PickledDict({})}, {"w/data.pkl", PickledDict({})}})),
              HasSubstr("two data.pkl"));
}

TEST(StateDict, ReadsTheModelOfACheckpoint) {
  const std::string inner = "}" + PickledText("a") + PickledTensor("FloatStorage", "0", 6, 0, {6}, {1}) + "s";
  const std::string file = WithPickle(PickledDict({{"model", inner}}));
  ASSERT_EQ(ParseStateDict(AsBytes(file)).size(), 1U);
  // A tensor with that name is treated as a tensor.
  const std::string plain =
      WithPickle(PickledDict({{"model", PickledTensor("FloatStorage", "0", 6, 0, {6}, {1})}}));
  const std::vector<TensorEntry> entries = ParseStateDict(AsBytes(plain));
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].name, "model");
}

TEST(StateDict, RefusesNamesThatAreNotTexts) {
  const std::string tensor = PickledTensor("FloatStorage", "0", 6, 0, {6}, {1});
  EXPECT_THAT(Error(WithPickle("\x80\x02}" + PickledInt(1) + tensor + "s.")),
              HasSubstr("name is not a UTF-8 string"));
  EXPECT_THAT(Error(WithPickle(PickledDict({{"\xFF", tensor}}))), HasSubstr("name is not a UTF-8 string"));
}

// An integer as Python's pickle writes those beyond 32 bits: the given bytes, the last with the sign.
std::string PickledLong(const std::string& bytes) { return "\x8a" + Little(bytes.size(), 1) + bytes; }

std::string WithOffsetAndStride(const std::string& offset, const std::string& stride, int32_t extent) {
  return WithPickle(PickledDict({{"a", "ctorch._utils\n_rebuild_tensor_v2\n((" + PickledText("storage") +
                                           "ctorch\nFloatStorage\n" + PickledText("0") + PickledText("cpu") +
                                           PickledInt(6) + "tQ" + offset + testing::PickledTuple({extent}) +
                                           "(" + stride + "t\x89" + "ccollections\nOrderedDict\n)RtR"}}));
}

TEST(StateDict, ReadsLongNumbers) {
  EXPECT_EQ(Error(WithOffsetAndStride(PickledLong(""), PickledLong("\x01"), 6)), "");
  EXPECT_EQ(
      Error(WithOffsetAndStride(PickledLong(std::string("\x01\0\0\0\0\0\0\0", 8)), PickledLong("\x01"), 5)),
      "");
  EXPECT_THAT(Error(WithOffsetAndStride(PickledLong("\xFF"), PickledLong("\x01"), 2)),
              HasSubstr("offset is negative"));
  EXPECT_THAT(Error(WithOffsetAndStride(PickledLong(std::string(9, '\x01')), PickledLong("\x01"), 2)),
              HasSubstr("does not fit in 64 bits"));
}

TEST(StateDict, RefusesStridesThatOverflow) {
  const std::string huge = PickledLong("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F");
  EXPECT_THAT(Error(WithOffsetAndStride(PickledInt(0), huge, 4)), HasSubstr("beyond its storage"));
  EXPECT_THAT(Error(WithOffsetAndStride(huge, huge, 2)), HasSubstr("beyond its storage"));
}

TEST(StateDict, RefusesWhatNamesNoStorage) {
  const auto storage = [](const std::string& global) {
    return WithPickle("\x80\x02(" + PickledText("storage") + "c" + global + "\n" + PickledText("0") +
                      PickledText("cpu") + PickledInt(6) + "tQ.");
  };
  EXPECT_THAT(Error(storage("collections\nOrderedDict")), HasSubstr("expected a storage class"));
  EXPECT_THAT(Error(storage("torch\nFloatStorage")), HasSubstr("does not contain a dict"));
}

TEST(StateDict, RefusesTensorsOfManyDimensions) {
  const std::vector<int32_t> ones(17, 1);
  EXPECT_THAT(Error(WithTensor(6, 0, ones, ones)), HasSubstr("more than 16 numbers"));
}

TEST(StateDict, RefusesCallsWithOtherArguments) {
  EXPECT_THAT(Error(WithPickle("\x80\x02"
                               "ccollections\nOrderedDict\nNN\x86R.")),
              HasSubstr("with 2 arguments is not supported"));
  EXPECT_THAT(Error(WithPickle("\x80\x02"
                               "ccollections\nOrderedDict\nN\x85R.")),
              HasSubstr("expected a list of pairs"));
  EXPECT_THAT(Error(WithPickle("\x80\x02"
                               "ctorch._utils\n_rebuild_parameter\nN\x85R.")),
              HasSubstr("with 1 arguments is not supported"));
}

TEST(StateDict, RefusesPicklesWithoutBounds) {
  EXPECT_THAT(Error(WithPickle(std::string((size_t{64} << 20) + 1, 'N'))),
              HasSubstr("at most 67108864 are allowed"));
  const std::string protocol = "\x80\x02";
  EXPECT_THAT(Error(WithPickle(protocol + std::string(2'000'001, '('))),
              HasSubstr("more than 2000000 marks"));
  std::string puts = protocol + "N";
  for (uint32_t slot = 0; slot < 2'000'001; ++slot) {
    puts += 'r';
    for (int byte = 0; byte < 4; ++byte) puts += static_cast<char>(slot >> (8 * byte));
  }
  EXPECT_THAT(Error(WithPickle(puts)), HasSubstr("memo has more than 2000000 entries"));
}

}  // namespace
}  // namespace saccade::models
