#include "server/shared_memory/shared_memory.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>
#include <vector>

namespace saccade::server {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMax = std::numeric_limits<uint64_t>::max();

class SharedMemoryTest : public ::testing::Test {
 protected:
  SharedMemoryTest() {
    folder_ =
        fs::path(::testing::TempDir()) / ::testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
    Put("frames", "0123456789");
    options_ = {.allowed = true, .max_tensor_bytes = 8, .max_regions = 3, .folder = folder_};
  }

  void Put(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name) << bytes;
  }

  std::string Content(const std::string& name) const {
    std::ifstream file(folder_ / name);
    return std::string(std::istreambuf_iterator<char>(file), {});
  }

  fs::path folder_;
  SharedMemory::Options options_;
};

absl::StatusCode CodeOf(const absl::Status& status) { return status.code(); }

std::string Text(const BytePieces& bytes) {
  std::string text(bytes.size(), '\0');
  bytes.CopyTo(text.data());
  return text;
}

absl::Status Write(const SharedMemory& memory, const SharedRange& range, const BytePieces& bytes) {
  const auto held = memory.Hold(range);
  return held.ok() ? SharedMemory::Write(*held, range, bytes) : held.status();
}

TEST_F(SharedMemoryTest, ARegionThatIsHeldCanBeWrittenAfterItIsUnregistered) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "r", .key = "frames", .size = 8}).ok());
  const SharedRange range = {.region = "r", .offset = 1, .size = 2};
  const auto held = memory.Hold(range);
  ASSERT_TRUE(held.ok()) << held.status();
  memory.Unregister("r");
  EXPECT_EQ(CodeOf(memory.Check(range)), absl::StatusCode::kNotFound);
  EXPECT_EQ(SharedMemory::Write(*held, range, BytePieces(std::string_view("AB"))), absl::OkStatus());
  EXPECT_EQ(Content("frames"), "0AB3456789");
}

TEST_F(SharedMemoryTest, ARegionBelongsToTheTokenThatRegisteredIt) {
  SharedMemory memory(options_);
  const SharedRegion region{.name = "r", .key = "frames", .offset = 0, .size = 4};
  const SharedRange range{.region = "r", .offset = 0, .size = 4};
  ASSERT_EQ(memory.Register(region, "token:1"), absl::OkStatus());
  EXPECT_TRUE(memory.Read(range, "token:1").ok());
  for (const char* other : {"token:2", "", "ipv4:127.0.0.1"}) {
    EXPECT_EQ(CodeOf(memory.Check(range, other)), absl::StatusCode::kNotFound) << other;
    EXPECT_EQ(CodeOf(memory.Read(range, other).status()), absl::StatusCode::kNotFound) << other;
    EXPECT_EQ(CodeOf(memory.Hold(range, other).status()), absl::StatusCode::kNotFound) << other;
    EXPECT_TRUE(memory.Status("", other)->empty()) << other;
    memory.Unregister("r", other);
    memory.Unregister("", other);
  }
  EXPECT_EQ(memory.Status("r", "token:1")->size(), 1u) << "still there";
  ASSERT_EQ(memory.Register(region, "token:2"), absl::OkStatus()) << "names of others are free";
  memory.Unregister("", "token:1");
  EXPECT_EQ(CodeOf(memory.Check(range, "token:1")), absl::StatusCode::kNotFound);
  EXPECT_TRUE(memory.Check(range, "token:2").ok());
}

TEST_F(SharedMemoryTest, RegionsOfWithdrawnTokensAreReleased) {
  SharedMemory memory(options_);
  const SharedRegion region{.name = "r", .key = "frames", .offset = 0, .size = 4};
  const SharedRange range{.region = "r", .offset = 0, .size = 4};
  for (const char* client : {"token:1", "token:2", ""}) {
    ASSERT_EQ(memory.Register(region, client), absl::OkStatus());
  }
  const auto held = memory.Hold(range, "token:1");
  memory.KeepTokens({"token:2", "token:3"});
  EXPECT_EQ(CodeOf(memory.Check(range, "token:1")), absl::StatusCode::kNotFound);
  EXPECT_TRUE(memory.Check(range, "token:2").ok());
  EXPECT_TRUE(memory.Check(range, "").ok()) << "clients without a token keep theirs";
  EXPECT_EQ(SharedMemory::Write(*held, range, BytePieces(std::string_view("AB"))), absl::OkStatus())
      << "a call in progress goes on";
}

TEST_F(SharedMemoryTest, OneTokenDoesNotTakeAllRegions) {
  options_.max_regions_of_token = 2;
  SharedMemory memory(options_);
  SharedRegion region{.name = "a", .key = "frames", .offset = 0, .size = 4};
  ASSERT_EQ(memory.Register(region, "token:1"), absl::OkStatus());
  region.name = "b";
  ASSERT_EQ(memory.Register(region, "token:1"), absl::OkStatus());
  region.name = "c";
  const absl::Status full = memory.Register(region, "token:1");
  EXPECT_EQ(CodeOf(full), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(full.message().find("the token has 2 shared memory regions"), std::string::npos) << full;
  EXPECT_EQ(memory.Register(region, "token:2"), absl::OkStatus());
  memory.Unregister("a", "token:1");
  EXPECT_EQ(CodeOf(memory.Register(region, "")), absl::StatusCode::kOk) << "there is room for three in all";
}

TEST_F(SharedMemoryTest, ClientsWithoutTokensShareTheirRegions) {
  SharedMemory memory(options_);
  ASSERT_EQ(memory.Register({.name = "r", .key = "frames", .offset = 0, .size = 4}, "ipv4:127.0.0.1"),
            absl::OkStatus());
  EXPECT_TRUE(memory.Read({.region = "r", .offset = 0, .size = 4}, "ipv6:[::/64]").ok());
}

TEST_F(SharedMemoryTest, BytesGoBothWays) {
  SharedMemory memory(options_);
  ASSERT_EQ(memory.Register({.name = "r", .key = "/frames", .offset = 2, .size = 6}), absl::OkStatus());
  const auto read = memory.Read({.region = "r", .offset = 1, .size = 3});
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(Text(*read), "345");
  BytePieces pieces;
  pieces.Add("AB");
  pieces.Add("C");
  ASSERT_EQ(Write(memory, {.region = "r", .offset = 2, .size = 4}, pieces), absl::OkStatus());
  EXPECT_EQ(Content("frames"), "0123ABC789");
}

TEST_F(SharedMemoryTest, WhatWasReadStaysWhateverTheClientWrites) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "r", .key = "frames", .size = 8}).ok());
  const auto read = memory.Read({.region = "r", .size = 8});
  Put("frames", "xxxxxxxxxx");
  EXPECT_EQ(Text(*read), "01234567");
}

TEST_F(SharedMemoryTest, OffUnlessAllowed) {
  options_.allowed = false;
  SharedMemory memory(options_);
  const absl::Status refused = memory.Register({.name = "r", .key = "frames", .size = 8});
  EXPECT_EQ(CodeOf(refused), absl::StatusCode::kUnimplemented);
  EXPECT_NE(refused.message().find("--allow-shared-memory"), absl::string_view::npos);
  memory.Unregister("");
  EXPECT_TRUE(memory.Status("")->empty());
}

TEST_F(SharedMemoryTest, KeysThatAreNoPlainNameOrNoSharedMemoryAreRefused) {
  fs::create_directories(folder_ / "folder");
  Put("folder/inside", "0123456789");
  Put("../outside", "0123456789");
  fs::create_symlink("frames", folder_ / "link");
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  SharedMemory memory(options_);
  for (const std::string key : {"", "/", ".", "..", "/..", "../outside", "/../outside", "folder/inside",
                                "//frames", "/folder", "link", "/pipe", "fra\nmes/"}) {
    EXPECT_EQ(CodeOf(memory.Register({.name = "r", .key = key, .size = 1})),
              absl::StatusCode::kInvalidArgument)
        << key;
  }
  EXPECT_EQ(CodeOf(memory.Register({.name = "r", .key = std::string("frames\0x", 8), .size = 1})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(memory.Register({.name = "r", .key = std::string(300, 'k'), .size = 1})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(memory.Register({.name = "r", .key = "nothing", .size = 1})), absl::StatusCode::kNotFound);
  EXPECT_TRUE(memory.Status("")->empty());
}

TEST_F(SharedMemoryTest, WhatItsOwnerKeepsToHimselfIsRefused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can make somebody else's file";
  constexpr uid_t kSomebody = 12345;
  const std::string path = folder_ / "frames";
  ASSERT_EQ(chown(path.c_str(), kSomebody, kSomebody), 0);
  ASSERT_EQ(chmod(path.c_str(), 0644), 0);
  SharedMemory memory(options_);
  const SharedRegion region{.name = "r", .key = "frames", .size = 8};
  EXPECT_EQ(CodeOf(memory.Register(region)), absl::StatusCode::kInvalidArgument);
  ASSERT_EQ(chmod(path.c_str(), 0666), 0);
  EXPECT_EQ(memory.Register(region), absl::OkStatus());
}

TEST_F(SharedMemoryTest, RangesOutsideAreRefused) {
  SharedMemory memory(options_);
  for (const auto& [offset, size] : std::vector<std::pair<uint64_t, uint64_t>>{
           {0, 0}, {0, 11}, {10, 1}, {11, 1}, {1, kMax}, {kMax, 1}, {kMax, kMax}, {5, kMax - 4}}) {
    EXPECT_EQ(CodeOf(memory.Register({.name = "r", .key = "frames", .offset = offset, .size = size})),
              absl::StatusCode::kInvalidArgument)
        << offset << " " << size;
  }
  ASSERT_TRUE(memory.Register({.name = "r", .key = "frames", .offset = 4, .size = 4}).ok());
  ASSERT_TRUE(memory.Register({.name = "all", .key = "frames", .size = 10}).ok());
  for (const auto& [offset, size] :
       std::vector<std::pair<uint64_t, uint64_t>>{{0, 5}, {4, 1}, {1, kMax}, {kMax, 1}, {kMax - 1, 3}}) {
    EXPECT_EQ(CodeOf(memory.Check({.region = "r", .offset = offset, .size = size})),
              absl::StatusCode::kInvalidArgument)
        << offset << " " << size;
  }
  EXPECT_EQ(memory.Check({.region = "r", .offset = 4, .size = 0}), absl::OkStatus());
  EXPECT_EQ(CodeOf(memory.Read({.region = "all", .size = 9}).status()), absl::StatusCode::kInvalidArgument)
      << "above max_tensor_bytes";
  EXPECT_EQ(CodeOf(Write(memory, {.region = "r", .size = 2}, BytePieces(std::string_view("123")))),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(CodeOf(memory.Check({.region = "other", .size = 1})), absl::StatusCode::kNotFound);
}

TEST_F(SharedMemoryTest, AFileThatIsCutIsAnErrorAndNoSignal) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "r", .key = "frames", .size = 8}).ok());
  fs::resize_file(folder_ / "frames", 4);
  EXPECT_EQ(CodeOf(memory.Read({.region = "r", .size = 8}).status()), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(CodeOf(Write(memory, {.region = "r", .size = 8}, BytePieces(std::string_view("12345")))),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(fs::file_size(folder_ / "frames"), 4u);
  EXPECT_TRUE(memory.Read({.region = "r", .size = 4}).ok());
}

TEST_F(SharedMemoryTest, RegionsHaveNamesOfTheirOwnAndAreBounded) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "b", .key = "frames", .size = 1}).ok());
  ASSERT_TRUE(memory.Register({.name = "a", .key = "frames", .offset = 3, .size = 2}).ok());
  EXPECT_EQ(CodeOf(memory.Register({.name = "a", .key = "frames", .size = 1})),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(CodeOf(memory.Register({.name = "", .key = "frames", .size = 1})),
            absl::StatusCode::kInvalidArgument);
  ASSERT_TRUE(memory.Register({.name = "c", .key = "frames", .size = 1}).ok());
  EXPECT_EQ(CodeOf(memory.Register({.name = "d", .key = "frames", .size = 1})),
            absl::StatusCode::kResourceExhausted);
  const auto list = *memory.Status("");
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0].name, "a");
  EXPECT_EQ(list[0].key, "frames");
  EXPECT_EQ(list[0].offset, 3u);
  EXPECT_EQ(list[0].size, 2u);
  EXPECT_EQ(memory.Status("b")->at(0).size, 1u);
  memory.Unregister("b");
  memory.Unregister("b");
  EXPECT_EQ(CodeOf(memory.Status("b").status()), absl::StatusCode::kNotFound);
  memory.Unregister("");
  EXPECT_TRUE(memory.Status("")->empty());
}

TEST_F(SharedMemoryTest, ACallThatUsesARegionCanFinishAfterItIsUnregistered) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "r", .key = "frames", .size = 8}).ok());
  const auto read = memory.Read({.region = "r", .size = 8});
  memory.Unregister("r");
  fs::remove(folder_ / "frames");
  EXPECT_EQ(Text(*read), "01234567");
  EXPECT_EQ(CodeOf(memory.Check({.region = "r", .size = 1})), absl::StatusCode::kNotFound);
}

// A region is the file that was registered, whatever file has its name later.
TEST_F(SharedMemoryTest, AFileThatReplacesTheRegisteredOneIsNotRead) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "r", .key = "frames", .size = 8}).ok());
  fs::remove(folder_ / "frames");
  Put("frames", "xxxxxxxxxx");
  EXPECT_EQ(Text(*memory.Read({.region = "r", .size = 8})), "01234567");
}

TEST_F(SharedMemoryTest, AFileThatGrowsKeepsTheRegionsSize) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "r", .key = "frames", .offset = 8, .size = 2}).ok());
  fs::resize_file(folder_ / "frames", 100);
  EXPECT_EQ(CodeOf(memory.Check({.region = "r", .size = 3})), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Text(*memory.Read({.region = "r", .size = 2})), "89");
}

TEST_F(SharedMemoryTest, EmptyRangesAreReadAndWritten) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "r", .key = "frames", .size = 8}).ok());
  EXPECT_EQ(memory.Read({.region = "r", .offset = 8, .size = 0})->size(), 0U);
  EXPECT_EQ(Write(memory, {.region = "r", .size = 0}, BytePieces()), absl::OkStatus());
  EXPECT_EQ(Content("frames"), "0123456789");
}

// Names come from clients and are quoted in errors.
TEST_F(SharedMemoryTest, QuotedNamesAreEscapedAndShortened) {
  SharedMemory memory(options_);
  for (const std::string& name : {std::string("\x1b[31m\n"), std::string(10'000, 'n')}) {
    const std::string message(memory.Check({.region = name, .size = 1}).message());
    EXPECT_EQ(message.find('\x1b'), std::string::npos);
    EXPECT_EQ(message.find('\n'), std::string::npos);
    EXPECT_LT(message.size(), 400U);
  }
  EXPECT_EQ(CodeOf(memory.Register({.name = std::string(257, 'n'), .key = "frames", .size = 1})),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(memory.Register({.name = std::string(256, 'n'), .key = "frames", .size = 1}).ok());
}

TEST_F(SharedMemoryTest, ManyThreads) {
  SharedMemory memory(options_);
  ASSERT_TRUE(memory.Register({.name = "kept", .key = "frames", .size = 8}).ok());
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&memory, thread] {
      const std::string own = "own" + std::to_string(thread % 2);
      for (int i = 0; i < 200; ++i) {
        // Another thread may have registered the name, or the last free region.
        const absl::Status registered = memory.Register({.name = own, .key = "frames", .size = 4});
        EXPECT_TRUE(registered.ok() || absl::IsAlreadyExists(registered) ||
                    absl::IsResourceExhausted(registered))
            << registered;
        const auto read = memory.Read({.region = own, .size = 4});
        EXPECT_TRUE(read.ok() ? Text(*read) == "0123" : absl::IsNotFound(read.status())) << read.status();
        EXPECT_EQ(Text(*memory.Read({.region = "kept", .size = 8})), "01234567");
        memory.Unregister(own);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(memory.Status("")->size(), 1U);
}

}  // namespace
}  // namespace saccade::server
