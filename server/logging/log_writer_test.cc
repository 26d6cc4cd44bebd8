#include "server/logging/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace saccade::server {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);

// Two ends of a pipe or of a pair of sockets, closed at the end.
struct Ends {
  ~Ends() {
    CloseReader();
    close(writer);
  }
  void CloseReader() {
    if (reader >= 0) close(reader);
    reader = -1;
  }
  std::string Read(size_t size) const {
    std::string text(size, '\0');
    size_t done = 0;
    while (done < size) {
      const ssize_t got = read(reader, &text[done], size - done);
      if (got <= 0) break;
      done += static_cast<size_t>(got);
    }
    return text.substr(0, done);
  }

  int reader = -1;
  int writer = -1;
};

void OpenPipe(Ends& ends) {
  int fds[2];
  ASSERT_EQ(pipe(fds), 0);
  ends.reader = fds[0];
  ends.writer = fds[1];
}

TEST(LogWriterTest, LinesAreWrittenInOrder) {
  Ends ends;
  OpenPipe(ends);
  LogWriter writer({.fd = ends.writer});
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    writer.Write(absl::StrCat("line ", i, "\n"));
    absl::StrAppend(&expected, "line ", i, "\n");
  }
  EXPECT_TRUE(writer.Flush(kLong));
  EXPECT_EQ(ends.Read(expected.size()), expected);
}

// The reader reads nothing: lines are dropped and counted at once, and those that fit are written later.
void AStalledReader(Ends& ends) {
  LogWriter writer({.fd = ends.writer, .max_queued_bytes = 100'000});
  const std::string line = std::string(9'999, 'x') + "\n";
  const uint64_t lines = 1000;
  for (uint64_t i = 0; i < lines; ++i) writer.Write(line);
  EXPECT_FALSE(writer.Flush(absl::ZeroDuration()));
  const LogLosses losses = writer.losses();
  EXPECT_GT(losses.queue_full, lines / 2);
  EXPECT_EQ(losses.write_failed, 0);
  const uint64_t kept = lines - losses.queue_full;
  EXPECT_GE(kept, 10);
  EXPECT_EQ(ends.Read(kept * line.size()).size(), kept * line.size());
  EXPECT_TRUE(writer.Flush(kLong));
}

TEST(LogWriterTest, APipeWhoseReaderStalls) {
  Ends ends;
  OpenPipe(ends);
  AStalledReader(ends);
}

TEST(LogWriterTest, ASocketWhoseReaderStalls) {
  int fds[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
  Ends ends{.reader = fds[0], .writer = fds[1]};
  AStalledReader(ends);
}

TEST(LogWriterTest, ItEndsWhileTheReaderStalls) {
  Ends ends;
  OpenPipe(ends);
  LogWriter writer({.fd = ends.writer});
  for (int i = 0; i < 200; ++i) writer.Write(std::string(1000, 'x'));
}

TEST(LogWriterTest, AReaderThatHasGoneIsNoSignal) {
  // SIGPIPE's default would end this process.
  signal(SIGPIPE, SIG_DFL);
  Ends ends;
  OpenPipe(ends);
  ends.CloseReader();
  LogWriter writer({.fd = ends.writer});
  writer.Write("lost\n");
  EXPECT_TRUE(writer.Flush(kLong));
  EXPECT_EQ(writer.losses().write_failed, 1);
}

TEST(LogWriterTest, AFullDiskAndAClosedDescriptorLoseLinesOnly) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  {
    LogWriter writer({.fd = full});
    writer.Write("lost\n");
    writer.Write("lost\n");
    EXPECT_TRUE(writer.Flush(kLong));
    EXPECT_EQ(writer.losses().write_failed, 2);
  }
  close(full);
  LogWriter writer({.fd = full});
  writer.Write("lost\n");
  EXPECT_TRUE(writer.Flush(kLong));
  EXPECT_EQ(writer.losses().write_failed, 1);
}

TEST(LogWriterTest, ALineLargerThanTheQueueIsDropped) {
  Ends ends;
  OpenPipe(ends);
  LogWriter writer({.fd = ends.writer, .max_queued_bytes = 10});
  writer.Write("twenty characters...\n");
  writer.Write("short\n");
  EXPECT_TRUE(writer.Flush(kLong));
  EXPECT_EQ(ends.Read(6), "short\n");
  EXPECT_EQ(writer.losses().queue_full, 1);
}

}  // namespace
}  // namespace saccade::server
