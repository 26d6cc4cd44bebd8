#include "server/repository/files.h"

#include <sys/stat.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/repository/test_repository.h"

namespace saccade::server {
namespace {

using ::testing::HasSubstr;

std::string Message(const absl::Status& status) { return std::string(status.message()); }

TEST(RepositoryPathTest, RefusesWhatIsNoFolder) {
  TestRepository repository;
  repository.Write("file", "text");
  const auto missing = RepositoryPath::Root(repository.string() + "/nowhere");
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(Message(missing.status()), HasSubstr("nowhere"));
  const auto file = RepositoryPath::Root(repository.string() + "/file");
  EXPECT_THAT(Message(file.status()), HasSubstr("is not a directory"));
}

TEST(RepositoryPathTest, ReadsUpToTheBoundAndNotBeyond) {
  TestRepository repository;
  repository.Write("a/text", "12345678");
  const auto root = RepositoryPath::Root(repository.string());
  ASSERT_TRUE(root.ok()) << root.status();
  const RepositoryPath file = *root / "a" / "text";
  EXPECT_EQ(*file.ReadText(8), "12345678");
  EXPECT_THAT(Message(file.ReadText(7).status()), HasSubstr("a/text: is larger than the maximum of 7 bytes"));
  EXPECT_EQ((*root / "b").ReadText(8).status().code(), absl::StatusCode::kNotFound);
}

TEST(RepositoryPathTest, ALinkMayStayInsideButNotLeadOut) {
  TestRepository repository, elsewhere;
  repository.Write("real/text", "inside");
  elsewhere.Write("text", "outside");
  std::filesystem::create_symlink(repository.path() / "real" / "text", repository.path() / "inside");
  std::filesystem::create_symlink(elsewhere.path() / "text", repository.path() / "outside");
  // A folder next to the repository whose path has the repository's path as prefix.
  const std::string sibling = repository.string() + "_sibling";
  std::filesystem::create_directory(sibling);
  std::filesystem::create_symlink(sibling, repository.path() / "sibling");
  const auto root = RepositoryPath::Root(repository.string());
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_EQ(*(*root / "inside").ReadText(100), "inside");
  EXPECT_THAT(Message((*root / "outside").ReadText(100).status()),
              HasSubstr("leads out of the model repository"));
  EXPECT_THAT(Message((*root / "sibling").List().status()), HasSubstr("leads out of the model repository"));
  std::filesystem::remove(sibling);
}

TEST(RepositoryPathTest, APipeDoesNotBlock) {
  TestRepository repository;
  ASSERT_EQ(mkfifo((repository.path() / "pipe").c_str(), 0600), 0);
  const auto root = RepositoryPath::Root(repository.string());
  ASSERT_TRUE(root.ok()) << root.status();
  EXPECT_THAT(Message((*root / "pipe").ReadText(100).status()), HasSubstr("expected a regular file"));
}

TEST(RepositoryPathTest, ListsSortedWithoutHiddenEntries) {
  TestRepository repository;
  repository.Write("b/x", "");
  repository.Write("a", "");
  repository.Write(".hidden/x", "");
  const auto entries = RepositoryPath::Root(repository.string())->List();
  ASSERT_TRUE(entries.ok()) << entries.status();
  ASSERT_EQ(entries->size(), 2u);
  EXPECT_EQ((*entries)[0].name, "a");
  EXPECT_TRUE((*entries)[0].is_file);
  EXPECT_EQ((*entries)[1].name, "b");
  EXPECT_TRUE((*entries)[1].is_directory);
}

}  // namespace
}  // namespace saccade::server
