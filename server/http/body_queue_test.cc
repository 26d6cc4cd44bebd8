#include "server/http/body_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace saccade::server {
namespace {

// A message whose memory is released with its last reference.
BytePieces Message(const std::vector<std::string>& pieces, std::weak_ptr<const void>* owner = nullptr) {
  const auto kept = std::make_shared<const std::vector<std::string>>(pieces);
  if (owner != nullptr) *owner = kept;
  BytePieces message(std::string_view(), kept);
  for (const std::string& piece : *kept) message.Add(piece);
  return message;
}

std::string Written(Output& output) {
  std::string text;
  while (!output.empty()) {
    iovec first;
    output.Peek(absl::MakeSpan(&first, 1));
    text.append(static_cast<const char*>(first.iov_base), first.iov_len);
    output.Consume(first.iov_len);
  }
  return text;
}

TEST(BodyQueueTest, MessagesComeOutInOrderInPartsOfAnySize) {
  const std::vector<std::vector<std::string>> messages = {
      {"a"}, {std::string(10'000, 'b'), "cd", std::string(7000, 'e')}, {"f", "g"}, {std::string(5000, 'h')}};
  std::string whole;
  for (const auto& message : messages)
    for (const std::string& piece : message) whole += piece;
  for (const size_t part : {size_t{1}, size_t{2}, size_t{999}, size_t{10'001}, whole.size()}) {
    BodyQueue queue;
    Output output;
    for (const auto& message : messages) queue.Add(Message(message));
    EXPECT_EQ(queue.size(), whole.size());
    while (queue.size() > 0) queue.MoveTo(output, std::min(part, queue.size()));
    EXPECT_TRUE(Written(output) == whole) << part;
  }
}

TEST(BodyQueueTest, LargeMessagesAreNotCopiedAndLiveUntilTheyAreWritten) {
  std::weak_ptr<const void> owner;
  BodyQueue queue;
  Output output;
  queue.Add(Message({std::string(20'000, 'x')}, &owner));
  queue.MoveTo(output, 10'000);
  queue.MoveTo(output, 10'000);
  EXPECT_EQ(queue.size(), 0U);
  output.Consume(10'000);
  EXPECT_FALSE(owner.expired());
  output.Consume(10'000);
  EXPECT_TRUE(owner.expired());
}

TEST(BodyQueueTest, ClearReleasesWhatWaits) {
  std::weak_ptr<const void> split;
  std::weak_ptr<const void> waiting;
  BodyQueue queue;
  Output output;
  queue.Add(Message({"hello"}, &split));
  queue.Add(Message({"world"}, &waiting));
  queue.MoveTo(output, 2);
  queue.Clear();
  EXPECT_TRUE(split.expired());
  EXPECT_TRUE(waiting.expired());
  EXPECT_EQ(queue.size(), 0U);
  queue.Add(Message({"again"}));
  queue.MoveTo(output, 5);
  EXPECT_EQ(Written(output), "heagain");
}

TEST(BodyQueueTest, AQueueThatIsNeverEmptyKeepsItsOrder) {
  BodyQueue queue;
  Output output;
  std::string whole;
  for (int i = 0; i < 1000; ++i) {
    for (const char letter : {'a', 'b'}) {
      const std::string text(1 + i % 3, static_cast<char>(letter + i % 20));
      whole += text;
      queue.Add(Message({text}));
    }
    queue.MoveTo(output, queue.size() / 2);
  }
  queue.MoveTo(output, queue.size());
  EXPECT_EQ(Written(output), whole);
}

}  // namespace
}  // namespace saccade::server
