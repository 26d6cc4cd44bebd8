#include "server/grpc/message_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "server/grpc/grpc_handler.h"
#include "server/grpc/testing/fake_ledger.h"
#include "server/grpc/testing/framing.h"
#include "server/grpc/testing/scripted_handler.h"

namespace saccade::server {
namespace {

using testing::HasSubstr;
using State = MessageReader::State;

constexpr int64_t kMaxMessage = 1 << 20;

MessageReader::Options OptionsWith(ByteLedger* ledger, MessageEncoding encoding = MessageEncoding::kIdentity,
                                   int64_t max_growth = kMaxMessage) {
  return {.encoding = encoding,
          .bounds = {kMaxMessage, /*max_ratio=*/10, max_growth},
          .account = {ledger, "ipv4:10.0.0.7"}};
}

State AdvanceThrough(MessageReader& reader) {
  State state = reader.Advance();
  while (state == State::kWorking) state = reader.Advance();
  return state;
}

// What reading one message with that body leads to.
MessageFailure FailureOf(MessageReader& reader, absl::string_view body) {
  reader.Want();
  reader.Add(body);
  EXPECT_EQ(AdvanceThrough(reader), State::kFailed);
  return reader.Advance() == State::kFailed ? reader.failure() : MessageFailure{};
}

std::string RandomBytes(std::mt19937& random, size_t size) {
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(random() % 7 == 0 ? random() : 'a');
  return bytes;
}

TEST(MessageReader, FindsTheSameMessagesInAnySplit) {
  std::mt19937 random(7);
  for (int round = 0; round < 30; ++round) {
    FakeLedger ledger;
    std::vector<std::string> expected;
    std::string body;
    for (int i = 0; i < 8; ++i) {
      const size_t sizes[] = {0, 1, random() % 10, random() % 1000, random() % 100000};
      expected.push_back(RandomBytes(random, sizes[random() % 5]));
      const bool compress = random() % 2 == 0;
      body += compress ? Framed(Compressed(expected.back(), true), 1) : Framed(expected.back());
    }
    std::vector<std::string> found;
    {
      MessageReader reader(OptionsWith(&ledger, MessageEncoding::kGzip));
      reader.Want();
      const size_t longest = 1 + random() % (random() % 2 == 0 ? 10 : 70000);
      for (size_t at = 0; at < body.size();) {
        const size_t size = std::min(1 + random() % longest, body.size() - at);
        reader.Add(body.substr(at, size));
        at += size;
        // Sometimes the handler is slow to ask for the next, as long as the client's window lasts.
        while ((random() % 3 != 0 || reader.ahead() > 1000) && AdvanceThrough(reader) == State::kMessage) {
          found.push_back(TextOf(reader.TakeMessage()));
          reader.Want();
        }
      }
      reader.End();
      while (AdvanceThrough(reader) == State::kMessage) {
        found.push_back(TextOf(reader.TakeMessage()));
        reader.Want();
      }
      EXPECT_EQ(reader.Advance(), State::kEnd);
      EXPECT_EQ(ledger.charged(), 0);
    }
    ASSERT_EQ(found, expected) << "round " << round;
  }
}

TEST(MessageReader, ChargesAMessageByItsPrefixUntilItIsDropped) {
  FakeLedger ledger;
  MessageReader reader(OptionsWith(&ledger));
  reader.Want();
  EXPECT_FALSE(reader.begun());
  reader.Add(PrefixOf(1000));
  EXPECT_TRUE(reader.begun());
  EXPECT_EQ(reader.missing(), 1000u);
  EXPECT_EQ(ledger.charged(), 1000);
  EXPECT_EQ(ledger.client(), "ipv4:10.0.0.7");
  reader.Add(std::string(1000, 'x'));
  ASSERT_EQ(reader.Advance(), State::kMessage);
  BytePieces message = reader.TakeMessage();
  EXPECT_EQ(message.pieces().size(), 1u);
  EXPECT_EQ(message.compressed_size(), std::nullopt);
  EXPECT_EQ(ledger.charged(), 1000);
  message = BytePieces();
  EXPECT_EQ(ledger.charged(), 0);
}

TEST(MessageReader, KeepsWhatWasNotAskedForUnread) {
  FakeLedger ledger;
  MessageReader reader(OptionsWith(&ledger));
  reader.Add(Framed("first") + PrefixOf(kMaxMessage + 1));
  EXPECT_EQ(reader.Advance(), State::kWaiting);
  EXPECT_FALSE(reader.begun());
  EXPECT_EQ(reader.ahead(), 15u);
  EXPECT_EQ(ledger.charged(), 65535);
  reader.Want();
  ASSERT_EQ(reader.Advance(), State::kMessage);
  EXPECT_EQ(TextOf(reader.TakeMessage()), "first");
  EXPECT_EQ(reader.ahead(), 5u);
  reader.Want();
  EXPECT_EQ(reader.Advance(), State::kFailed);
  reader.Clear();
  EXPECT_EQ(ledger.charged(), 0);
}

TEST(MessageReader, RefusesAMessageAboveTheBoundWithoutMemory) {
  FakeLedger ledger;
  MessageReader reader(OptionsWith(&ledger));
  const MessageFailure failure = FailureOf(reader, PrefixOf(kMaxMessage + 1));
  EXPECT_EQ(failure.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(failure.status.message(), HasSubstr("--max-message-bytes"));
  EXPECT_THAT(failure.status.message(), HasSubstr("1048577"));
  EXPECT_EQ(failure.refusal, Refusal::kBodyTooLarge);
  EXPECT_EQ(ledger.peak(), 0);
}

TEST(MessageReader, PassesOnTheLedgersRefusal) {
  FakeLedger ledger(999);
  MessageReader reader(OptionsWith(&ledger));
  const MessageFailure failure = FailureOf(reader, PrefixOf(1000));
  EXPECT_EQ(failure.status, absl::ResourceExhaustedError("no room for 1000 bytes"));
  EXPECT_EQ(failure.refusal, Refusal::kBytes);
}

TEST(MessageReader, RefusesWhatIsNoMessage) {
  FakeLedger ledger;
  MessageReader unknown_flag(OptionsWith(&ledger));
  EXPECT_THAT(FailureOf(unknown_flag, Framed("x", 2)).status.message(), HasSubstr("flag 2"));
  MessageReader compressed(OptionsWith(&ledger));
  const MessageFailure failure = FailureOf(compressed, Framed("x", 1));
  EXPECT_EQ(failure.status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(failure.status.message(), HasSubstr("grpc-encoding"));
  EXPECT_EQ(failure.refusal, Refusal::kMalformed);
}

TEST(MessageReader, RefusesABodyThatEndsWithinAMessage) {
  for (const std::string& body : {std::string("\0\0", 2), PrefixOf(10), PrefixOf(10) + "123456789"}) {
    FakeLedger ledger;
    MessageReader reader(OptionsWith(&ledger));
    reader.End();
    const MessageFailure failure = FailureOf(reader, body);
    EXPECT_EQ(failure.status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(failure.status.message(), HasSubstr("ended within a message"));
    reader.Clear();
    EXPECT_EQ(ledger.charged(), 0);
  }
}

TEST(Decompression, ReadsBothEncodings) {
  const std::string text(kMaxMessage, 'x');
  for (const bool gzip : {false, true}) {
    FakeLedger ledger;
    MessageReader reader(OptionsWith(&ledger, gzip ? MessageEncoding::kGzip : MessageEncoding::kDeflate));
    reader.Want();
    const std::string compressed = Compressed(text, gzip);
    reader.Add(Framed(compressed, 1));
    // Exactly as large as it may be.
    ASSERT_EQ(AdvanceThrough(reader), State::kMessage);
    BytePieces message = reader.TakeMessage();
    EXPECT_EQ(TextOf(message), text);
    EXPECT_EQ(message.compressed_size(), compressed.size());
    EXPECT_EQ(message.KeptBy(nullptr).compressed_size(), compressed.size());
    EXPECT_EQ(ledger.charged(), kMaxMessage);
    message = BytePieces();
    EXPECT_EQ(ledger.charged(), 0);
  }
}

TEST(Decompression, WorksInSteps) {
  FakeLedger ledger;
  MessageReader::Options options = OptionsWith(&ledger, MessageEncoding::kGzip);
  options.bounds.max_message_bytes = 16 << 20;
  options.bounds.max_growth_bytes = 16 << 20;
  MessageReader reader(options);
  reader.Want();
  reader.Add(Framed(Compressed(std::string(10 << 20, 'x'), true), 1));
  int steps = 0;
  while (reader.Advance() == State::kWorking) ++steps;
  EXPECT_GE(steps, 5);
  EXPECT_EQ(reader.TakeMessage().size(), size_t{10} << 20);
}

// Empty blocks take input and produce no output, so the input is bounded too.
TEST(Decompression, ReadsEmptyBlocksInSteps) {
  constexpr int kBlocks = 500'000;
  std::string blocks = "\x78\x9c";
  for (int i = 0; i < kBlocks; ++i) blocks += std::string("\0\0\0\xff\xff", 5);
  // A last block without bytes, and the checksum of nothing.
  blocks += std::string("\1\0\0\xff\xff\0\0\0\1", 9);
  MessageReader::Options options = OptionsWith(nullptr, MessageEncoding::kDeflate);
  options.bounds.max_message_bytes = 4 << 20;
  MessageReader reader(options);
  reader.Want();
  reader.Add(Framed(blocks, 1));
  size_t steps = 0;
  State state = State::kWorking;
  while (state == State::kWorking) {
    state = reader.Advance();
    ++steps;
  }
  EXPECT_EQ(state, State::kMessage);
  EXPECT_GE(steps, blocks.size() / MessageInflater::kStepInputBytes);
  EXPECT_EQ(reader.TakeMessage().size(), 0);
}

TEST(Decompression, StopsAtTheBoundOfAMessage) {
  FakeLedger ledger;
  MessageReader reader(OptionsWith(&ledger, MessageEncoding::kGzip));
  const std::string bomb = Compressed(std::string(64 << 20, '\0'), true);
  const MessageFailure failure = FailureOf(reader, Framed(bomb, 1));
  EXPECT_EQ(failure.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(failure.status.message(), HasSubstr("--max-message-bytes"));
  EXPECT_EQ(failure.refusal, Refusal::kDecompressedTooLarge);
  EXPECT_LE(ledger.peak(), kMaxMessage + static_cast<int64_t>(bomb.size()) + (48 << 10));
  EXPECT_EQ(ledger.charged(), 0);
  // One byte too many is refused too.
  MessageReader next(OptionsWith(&ledger, MessageEncoding::kGzip));
  EXPECT_EQ(FailureOf(next, Framed(Compressed(std::string(kMaxMessage + 1, 'x'), true), 1)).refusal,
            Refusal::kDecompressedTooLarge);
}

TEST(Decompression, StopsAtTheRatio) {
  constexpr int64_t kMaxGrowth = 64 << 10;
  FakeLedger ledger;
  MessageReader reader(OptionsWith(&ledger, MessageEncoding::kGzip, kMaxGrowth));
  const std::string bomb = Compressed(std::string(kMaxMessage / 2, '\0'), true);
  const MessageFailure failure = FailureOf(reader, Framed(bomb, 1));
  EXPECT_EQ(failure.status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(failure.status.message(), HasSubstr("uncompressed"));
  EXPECT_LE(ledger.peak(), 11 * static_cast<int64_t>(bomb.size()) + (112 << 10));
  // What does not grow much may pass, however little it is.
  MessageReader small(OptionsWith(&ledger, MessageEncoding::kGzip, kMaxGrowth));
  small.Want();
  small.Add(Framed(Compressed(std::string(64 << 10, '\0'), true), 1));
  EXPECT_EQ(AdvanceThrough(small), State::kMessage);
}

// What a default daemon accepts of one client.
TEST(Decompression, ABombEndsEarlyAndZerosPass) {
  MessageReader::Options options = OptionsWith(nullptr, MessageEncoding::kGzip);
  const GrpcHandler::Options defaults;
  options.bounds = {.max_message_bytes = defaults.max_message_bytes,
                    .max_ratio = defaults.max_compression_ratio,
                    .max_growth_bytes = defaults.max_growth_bytes};
  FakeLedger ledger;
  options.account.ledger = &ledger;
  MessageReader bomb(options);
  const MessageFailure failure = FailureOf(bomb, Framed(Compressed(std::string(60 << 20, '\0'), true), 1));
  EXPECT_EQ(failure.refusal, Refusal::kDecompressedTooLarge);
  EXPECT_LT(ledger.peak(), 17 << 20);
  // A tensor of zeros, 1x3x1024x1024 of FP32.
  MessageReader zeros(options);
  zeros.Want();
  zeros.Add(Framed(Compressed(std::string(12 << 20, '\0'), true), 1));
  EXPECT_EQ(AdvanceThrough(zeros), State::kMessage);
}

TEST(Decompression, ChargesEachStepBeforeItIsAllocated) {
  FakeLedger ledger(300 << 10);
  MessageReader reader(OptionsWith(&ledger, MessageEncoding::kGzip));
  const MessageFailure failure =
      FailureOf(reader, Framed(Compressed(std::string(kMaxMessage, 'x'), true), 1));
  EXPECT_EQ(failure.refusal, Refusal::kBytes);
  EXPECT_THAT(failure.status.message(), HasSubstr("no room"));
  EXPECT_EQ(ledger.charged(), 0);
}

TEST(Decompression, RefusesDamagedData) {
  const std::string good = Compressed("a text that is long enough to be compressed, long enough", true);
  std::string damaged = good;
  damaged[good.size() / 2] = static_cast<char>(damaged[good.size() / 2] ^ 0x55);
  std::string bad_sum = good;
  bad_sum[good.size() - 5] = static_cast<char>(bad_sum[good.size() - 5] ^ 1);
  for (const std::string& wrong : {damaged, bad_sum, good.substr(0, good.size() - 1), good.substr(0, 12),
                                   good + "x", good + good, std::string("not gzip at all")}) {
    FakeLedger ledger;
    MessageReader reader(OptionsWith(&ledger, MessageEncoding::kGzip));
    const MessageFailure failure = FailureOf(reader, Framed(wrong, 1));
    EXPECT_EQ(failure.status.code(), absl::StatusCode::kInternal) << failure.status;
    EXPECT_EQ(failure.refusal, Refusal::kMalformed);
    EXPECT_EQ(ledger.charged(), 0);
  }
}

}  // namespace
}  // namespace saccade::server
