#include "models/weights/format/weights_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>

#include "models/api/error.h"
#include "models/testing/thread_seconds.h"
#include "models/weights/format/mapped_file.h"
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

class MappedFileTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string folder_ = ::testing::TempDir() + "/mapped_file_test." + std::to_string(getpid());
};

TEST_F(MappedFileTest, OutlivesTheName) {
  const std::string path = folder_ + "/weights";
  std::ofstream(path) << "content";
  const auto file = MappedFile::Open(path, 7);
  std::filesystem::remove(path);
  EXPECT_EQ(file->bytes().size(), 7U);
  EXPECT_EQ(file->bytes()[0], std::byte{'c'});
}

TEST_F(MappedFileTest, AFileOfAnotherUserIsToldWithWhoReadsIt) {
  const std::string path = folder_ + "/private";
  std::ofstream(path) << "content";
  ASSERT_EQ(chmod(path.c_str(), 0), 0);
  // Root reads every file, so another user asks for it.
  constexpr uid_t kNobody = 65534;
  const bool is_root = geteuid() == 0;
  if (is_root && seteuid(kNobody) != 0) GTEST_SKIP() << "this machine's root may not become another user";
  std::string error;
  try {
    MappedFile::Open(path, 100);
  } catch (const LoadError& refused) {
    error = refused.what();
  }
  const std::string user = std::to_string(geteuid());
  ASSERT_EQ(is_root ? seteuid(0) : 0, 0);
  EXPECT_THAT(error, ::testing::AllOf(::testing::HasSubstr("runs as user " + user),
                                      ::testing::HasSubstr("chmod a+r")));
}

TEST_F(MappedFileTest, WhatIsLetGoIsReadAgainWhenItIsAskedFor) {
  const std::string path = folder_ + "/weights";
  std::ofstream(path) << std::string(1 << 20, 'x');
  const auto file = MappedFile::Open(path, 1 << 20);
  file->LetGo(file->bytes());
  file->LetGo(file->bytes().subspan(1, 7));
  EXPECT_EQ(file->bytes()[500'000], std::byte{'x'});
}

TEST_F(MappedFileTest, RefusesWhatIsNotAFileOfItsSize) {
  const std::string path = folder_ + "/weights";
  EXPECT_THROW(MappedFile::Open(path, 100), LoadError);
  EXPECT_THROW(MappedFile::Open(folder_, 100), LoadError);
  std::ofstream(path) << "content";
  EXPECT_THROW(MappedFile::Open(path, 6), LoadError);
  std::ofstream(path, std::ios::trunc).flush();
  EXPECT_THROW(MappedFile::Open(path, 100), LoadError);
  ASSERT_EQ(mkfifo((folder_ + "/pipe").c_str(), 0600), 0);
  EXPECT_THROW(MappedFile::Open(folder_ + "/pipe", 100), LoadError);
}

}  // namespace
}  // namespace saccade::models
