#include "models/weights/format/weights_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "models/api/error.h"
#include "models/testing/thread_seconds.h"
#include "models/weights/format/file_contents.h"
#include "models/weights/format/testing/files.h"

namespace saccade::models {
namespace {

using testing::AsBytes;

TEST(ParseWeights, TellsFormatsByContent) {
  const std::string safetensors = testing::SmallSafetensors();
  const std::string state_dict = testing::SmallStateDict();
  EXPECT_EQ(ParseWeights(AsBytes(safetensors)).size(), 2U);
  const std::string stream = testing::SmallSavedStream();
  EXPECT_EQ(ParseWeights(AsBytes(state_dict)).size(), 2U);
  EXPECT_EQ(ParseWeights(AsBytes(stream)).size(), 2U);
  // The length of this header, 640 bytes, begins like a pickle.
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})";
  const std::string padded = testing::Safetensors(header + std::string(640 - header.size(), ' '), "abcd");
  EXPECT_EQ(padded.substr(0, 2), "\x80\x02");
  EXPECT_EQ(ParseWeights(AsBytes(padded)).size(), 1U);
  EXPECT_THROW(ParseWeights(AsBytes("\x80\x02}.")), LoadError);
  // Protocols of pickles that torch.save does not write.
  for (const char* pickle : {"\x80\x03}q\x01(XY", "\x80\x04\x95 and so on", "\x80\x05}."}) {
    try {
      ParseWeights(AsBytes(pickle));
      FAIL() << pickle;
    } catch (const LoadError& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr("a pickle that torch.save did not write"));
    }
  }
  EXPECT_THROW(ParseWeights(AsBytes("")), LoadError);
}

TEST(WrappersPrefix, TakesTimeThatIsLinearInTheNames) {
  TensorEntry entry;
  for (int i = 0; i < 150'000; ++i) entry.name += "module.";
  const size_t length = entry.name.size();
  entry.name += "weight";
  const std::vector<TensorEntry> entries = {entry, entry};
  std::string prefix;
  // Also under a sanitizer. Time that is quadratic would be twenty seconds without one.
  EXPECT_LT(testing::ThreadSeconds([&] { prefix = WrappersPrefix(entries); }), 5);
  EXPECT_EQ(prefix, entry.name.substr(0, length));
}

// Reads everything that the entry claims to reach, so that a sanitizer detects a wrong claim.
void Touch(const TensorEntry& entry) {
  int64_t last = 0;
  for (size_t i = 0; i < entry.shape.size(); ++i) {
    if (entry.shape[i] == 0) return;
    last += (entry.shape[i] - 1) * entry.strides[i];
  }
  volatile std::byte first_byte = entry.data[0];
  volatile std::byte last_byte = entry.data[(last + 1) * Info(entry.type).size - 1];
  (void)first_byte;
  (void)last_byte;
}

TEST(ParseWeights, FlippedBytesNeverHarm) {
  std::mt19937 random(7);
  for (const std::string& good :
       {testing::SmallSafetensors(), testing::SmallStateDict(), testing::SmallSavedStream()}) {
    int refused = 0;
    for (int round = 0; round < 20'000; ++round) {
      std::string bad = good;
      for (int flips = 1 + static_cast<int>(random() % 3); flips > 0; --flips) {
        bad[random() % bad.size()] = static_cast<char>(random());
      }
      // On the heap with its exact size, so that an address sanitizer detects a read beyond it.
      const std::vector<char> exact(bad.begin(), bad.end());
      try {
        for (const TensorEntry& entry : ParseWeights(std::as_bytes(std::span(exact)))) Touch(entry);
      } catch (const LoadError&) {
        ++refused;
      }
    }
    EXPECT_GT(refused, 1000);
  }
}

class FileContentsTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_ = ::testing::TempDir() + "/file_contents_test." + std::to_string(getpid());
};

TEST_F(FileContentsTest, OutlivesTheName) {
  const std::string path = folder_ + "/weights";
  std::ofstream(path) << "content";
  const auto file = FileContents::Read(path, 7);
  std::filesystem::remove(path);
  EXPECT_EQ(file->bytes().size(), 7U);
  EXPECT_EQ(file->bytes()[0], std::byte{'c'});
}

TEST_F(FileContentsTest, AFileOfAnotherUserIsToldWithWhoReadsIt) {
  const std::string path = folder_ + "/private";
  std::ofstream(path) << "content";
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // Root reads every file, so another user asks for it.
  constexpr uid_t kNobody = 65534;
  const bool is_root = geteuid() == 0;
  if (is_root && seteuid(kNobody) != 0) GTEST_SKIP() << "this machine's root may not become another user";
  std::string error;
  try {
    FileContents::Read(path, 100);
  } catch (const LoadError& refused) {
    error = refused.what();
  }
  const std::string user = std::to_string(geteuid());
  ASSERT_EQ(is_root ? seteuid(0) : 0, 0);
  EXPECT_THAT(error, ::testing::AllOf(::testing::HasSubstr("runs as user " + user),
                                      ::testing::HasSubstr("chmod a+r")));
}

TEST_F(FileContentsTest, LetsGoOfWholePagesAlone) {
  const std::string path = folder_ + "/weights";
  std::ofstream(path) << std::string(1 << 20, 'x');
  const auto file = FileContents::Read(path, 1 << 20);
  file->LetGo(file->bytes().subspan(1, 7));
  file->LetGo({});
  EXPECT_EQ(file->bytes()[1], std::byte{'x'});
  file->LetGo(file->bytes().subspan(1));
  EXPECT_EQ(file->bytes()[0], std::byte{'x'});
  EXPECT_EQ(file->bytes()[500'000], std::byte{0});
}

TEST_F(FileContentsTest, StayWhateverHappensToTheFile) {
  const std::string path = folder_ + "/weights";
  std::ofstream(path) << std::string(1 << 20, 'x');
  const auto file = FileContents::Read(path, 1 << 20);
  std::filesystem::resize_file(path, 0);
  EXPECT_EQ(std::count(file->bytes().begin(), file->bytes().end(), std::byte{'x'}), 1 << 20);
}

TEST_F(FileContentsTest, OnlyTheWantedBytesAreRead) {
  const std::string path = folder_ + "/weights";
  std::ofstream(path) << std::string(1 << 20, 'x');
  size_t beginning = 0;
  const auto file = FileContents::Read(path, 1 << 20, [&](Bytes bytes) {
    beginning = bytes.size();
    return size_t{5000};
  });
  EXPECT_EQ(beginning, FileContents::kBeginningBytes);
  EXPECT_EQ(file->bytes().size(), size_t{1} << 20);
  EXPECT_EQ(file->bytes()[4999], std::byte{'x'});
  EXPECT_EQ(file->bytes()[5000], std::byte{0});
}

TEST_F(FileContentsTest, AFileThatChangesItsSizeMeanwhileIsRefused) {
  const std::string path = folder_ + "/weights";
  const auto error_if_resized = [&](uintmax_t size) -> std::string {
    std::ofstream(path) << std::string(100'000, 'x');
    try {
      FileContents::Read(path, 1 << 20, [&](Bytes) {
        std::filesystem::resize_file(path, size);
        return size_t{1} << 20;
      });
      return "";
    } catch (const LoadError& refused) {
      return refused.what();
    }
  };
  for (const uintmax_t size : {0, 16, 40'000, 99'999}) {
    EXPECT_THAT(error_if_resized(size),
                ::testing::AllOf(::testing::HasSubstr(path),
                                 ::testing::HasSubstr("had 100000 bytes when it was opened and has " +
                                                      std::to_string(size) + ": it was cut short")));
  }
  EXPECT_THAT(error_if_resized(100'001), ::testing::HasSubstr("has 100001: it grew while it was read"));
  EXPECT_EQ(error_if_resized(100'000), "");
}

TEST_F(FileContentsTest, TheIndexOfSafetensorsIsReadWithoutItsData) {
  const std::string path = folder_ + "/weights";
  const std::string header = R"({"a":{"dtype":"F32","shape":[25000],"data_offsets":[0,100000]}})";
  std::ofstream(path) << testing::Safetensors(header, std::string(100'000, 'x'));
  const auto index = ReadWeightsIndex(path);
  const std::vector<TensorEntry> entries = ParseWeights(index->bytes());
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].shape, std::vector<int64_t>({25'000}));
  EXPECT_EQ(entries[0].data[0], std::byte{0});
  for (const std::string& whole : {testing::SmallStateDict(), testing::SmallSavedStream()}) {
    std::ofstream(path, std::ios::trunc) << whole;
    EXPECT_EQ(ParseWeights(ReadWeightsIndex(path)->bytes()).size(), 2U);
  }
  std::ofstream(path, std::ios::trunc) << "a file";
  EXPECT_EQ(ReadWeightsIndex(path)->bytes()[5], std::byte{'e'});
}

TEST_F(FileContentsTest, RefusesWhatIsNotAFileOfItsSize) {
  const std::string path = folder_ + "/weights";
  EXPECT_THROW(FileContents::Read(path, 100), LoadError);
  EXPECT_THROW(FileContents::Read(folder_, 100), LoadError);
  std::ofstream(path) << "content";
  EXPECT_THROW(FileContents::Read(path, 6), LoadError);
  std::ofstream(path, std::ios::trunc).flush();
  EXPECT_THROW(FileContents::Read(path, 100), LoadError);
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_THROW(FileContents::Read(folder_ + "/pipe", 100), LoadError);
}

}  // namespace
}  // namespace saccade::models
