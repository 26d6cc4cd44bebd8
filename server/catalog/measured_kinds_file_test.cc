#include "server/catalog/measured_kinds_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/repository/testing/test_repository.h"

namespace saccade::server {
namespace {

namespace fs = std::filesystem;

MeasuredKind Threads(int threads) {
  MeasuredKind kind;
  kind.threads = threads;
  return kind;
}

class MeasuredKindsFileTest : public ::testing::Test {
 protected:
  MeasuredKindsFile File(const std::string& machine = "m, 2 cores") const {
    return {(folder_.path() / "below/state").string(), {machine, "1.0"}};
  }
  static void Overwrite(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary) << text;
  }
  size_t Files() const {
    const fs::directory_iterator files(folder_.path() / "below/state");
    return static_cast<size_t>(std::distance(begin(files), end(files)));
  }

  const TestRepository folder_;
};

TEST_F(MeasuredKindsFileTest, TheNextStartFindsWhatWasSaved) {
  EXPECT_TRUE(File().Load().empty());
  File().Save({{"a", Threads(3)}});
  const auto found = File().Load();
  ASSERT_EQ(found.size(), 1);
  EXPECT_EQ(found.at("a").threads, 3);
  EXPECT_EQ(Files(), 1) << "nothing is left beside it";
}

TEST_F(MeasuredKindsFileTest, AnotherDaemonsKindsAreKept) {
  File().Save({{"a", Threads(3)}, {"b", Threads(1)}});
  File().Save({{"b", Threads(2)}, {"c", {}}});
  const auto found = File().Load();
  ASSERT_EQ(found.size(), 3);
  EXPECT_EQ(found.at("b").threads, 2) << "the newer one";
}

TEST_F(MeasuredKindsFileTest, MachinesThatShareAFolderDoNotDisturbEachOther) {
  File("m, 2 cores").Save({{"a", Threads(2)}});
  File("m, 8 cores").Save({{"a", Threads(8)}});
  EXPECT_EQ(File("m, 2 cores").Load().at("a").threads, 2);
  EXPECT_EQ(File("m, 8 cores").Load().at("a").threads, 8);
}

TEST_F(MeasuredKindsFileTest, WhatIsDamagedOrForeignIsIgnoredAndReplaced) {
  MeasuredKindsFile file = File();
  file.Save({{"a", {}}});
  Overwrite(file.path(), "damaged");
  EXPECT_TRUE(File().Load().empty());
  fs::resize_file(file.path(), uintmax_t{1} << 40);
  EXPECT_TRUE(File().Load().empty()) << "only its beginning is read";
  File("another, 64 cores").Save({{"a", {}}});
  fs::copy_file(File("another, 64 cores").path(), file.path(), fs::copy_options::overwrite_existing);
  EXPECT_TRUE(File().Load().empty());
  file.Save({{"b", {}}});
  EXPECT_EQ(File().Load().size(), 1);
}

TEST_F(MeasuredKindsFileTest, NothingButARegularFileIsRead) {
  const MeasuredKindsFile file = File();
  fs::create_directories(fs::path(file.path()).parent_path());
  ASSERT_EQ(mkfifo(file.path().c_str(), 0600), 0);
  EXPECT_TRUE(File().Load().empty()) << "and it does not wait for a writer";
  fs::remove(file.path());
  fs::create_directory(file.path());
  EXPECT_TRUE(File().Load().empty());
}

// Daemons in containers have the same process ID, and may share the folder.
TEST_F(MeasuredKindsFileTest, AFileWithThisProcessIdDoesNotStopASave) {
  MeasuredKindsFile file = File();
  folder_.Write("victim", "precious");
  fs::create_directories(fs::path(file.path()).parent_path());
  fs::create_symlink(folder_.path() / "victim", absl::StrCat(file.path(), ".partial-", getpid()));
  file.Save({{"a", {}}});
  std::string text;
  std::getline(std::ifstream(folder_.path() / "victim"), text);
  EXPECT_EQ(text, "precious");
  EXPECT_EQ(File().Load().size(), 1);
}

TEST_F(MeasuredKindsFileTest, WhatADaemonLeftThatWasKilledIsRemoved) {
  MeasuredKindsFile file = File();
  fs::create_directories(fs::path(file.path()).parent_path());
  const std::string old = absl::StrCat(file.path(), ".partial-Ab12Cd");
  const std::string recent = absl::StrCat(file.path(), ".partial-Ef34Gh");
  for (const std::string& path : {old, recent}) std::ofstream(path) << "half";
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(2));
  file.Save({{"a", {}}});
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent)) << "another daemon may be writing it";
}

TEST_F(MeasuredKindsFileTest, AFolderThatCannotBeMadeIsNoError) {
  folder_.Write("below", "a file");
  MeasuredKindsFile file = File();
  file.Save({{"a", {}}});
  EXPECT_TRUE(file.Load().empty());
}

TEST_F(MeasuredKindsFileTest, WithoutAFolderNothingIsKept) {
  MeasuredKindsFile file("", {"m", "1.0"});
  file.Save({{"a", {}}});
  EXPECT_TRUE(file.Load().empty());
}

// A reader that meets a write sees the file before or after it, also while two daemons write.
TEST_F(MeasuredKindsFileTest, ReadersNeverSeeAPart) {
  std::map<std::string, MeasuredKind> kinds;
  for (int i = 0; i < 300; ++i) kinds[absl::StrCat("kind ", i)] = {};
  File().Save(kinds);
  const auto save = [&] {
    MeasuredKindsFile file = File();
    for (int i = 0; i < 50; ++i) file.Save(kinds);
  };
  std::thread writer(save), other(save);
  for (int i = 0; i < 200; ++i) EXPECT_EQ(File().Load().size(), kinds.size());
  writer.join();
  other.join();
  EXPECT_EQ(Files(), 1) << "nothing is left beside it";
}

// As the daemon uses it: several models are loaded at the same time.
TEST_F(MeasuredKindsFileTest, KindsOfSeveralThreadsAreAllSaved) {
  MeasuredKindsFile file = File();
  ModelKinds all(file.Load(), [&file](const auto& kinds) { file.Save(kinds); });
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&all, i] { all.Keep(absl::StrCat("kind ", i), {}); });
  for (std::thread& thread : threads) thread.join();
  all.Keep("", {});
  EXPECT_EQ(File().Load().size(), 8);
  EXPECT_TRUE(all.Find("kind 7").has_value());
}

}  // namespace
}  // namespace saccade::server
