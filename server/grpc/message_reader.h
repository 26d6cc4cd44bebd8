// Takes the messages out of a call's body.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "server/core/byte_pieces.h"
#include "server/grpc/message_compression.h"
#include "server/grpc/message_encoding.h"
#include "server/grpc/message_memory.h"
#include "server/grpc/message_prefix.h"

namespace saccade::server {

// A body is a sequence of messages, each with a prefix (message_prefix.h). A message's memory is charged and
// allocated once, when its prefix has come. Bytes beyond the message that was asked for are kept; the caller
// bounds them by what it lets the client send. Single thread.
class MessageReader {
 public:
  struct Options {
    MessageEncoding encoding = MessageEncoding::kIdentity;
    MessageInflater::Bounds bounds;
    MessageAccount account;
    // Messages are charged already; only bytes that come beyond them are charged to `account`.
    bool messages_are_charged = false;
    // Bytes beyond the message that was asked for make the call fail, instead of being kept.
    bool refuses_more = false;
  };

  enum class State {
    // More of the body is needed, or no message was asked for.
    kWaiting,
    // TakeMessage() returns the message.
    kMessage,
    // A message is being decompressed: call Advance() again, after other calls had their turn.
    kWorking,
    // The body has ended after the last message.
    kEnd,
    // failure() says why the body cannot be read on.
    kFailed,
  };

  explicit MessageReader(Options options) : options_(std::move(options)) {}

  // Asks for the next message.
  void Want();
  // Takes bytes of the body.
  void Add(absl::string_view bytes);
  // The body is complete.
  void End() { ended_ = true; }

  // Decompresses about `max_inflated` bytes at most.
  State Advance(size_t max_inflated = MessageInflater::kStepBytes);
  // REQUIRES: Advance() has returned kMessage. The message is then no longer asked for. It has a
  // compressed_size() if it came compressed.
  BytePieces TakeMessage();
  // Whether the next Advance() returns kFailed, also if no message was asked for.
  bool failed() const { return failure_.has_value(); }
  // REQUIRES: failed().
  const MessageFailure& failure() const { return *failure_; }

  // Whether a message that was asked for has begun and is not complete.
  bool begun() const { return wanted_ && !failure_ && phase_ <= Phase::kPayload && received() > 0; }
  // Bytes of that message that have come, with its prefix.
  size_t received() const { return prefix_size_ + filled_; }
  // Bytes of it that are still to come, as far as they are known.
  size_t missing() const { return kMessagePrefixBytes - prefix_size_ + length_ - filled_; }
  // Bytes that came beyond what was asked for.
  size_t ahead() const { return ahead_.size() - ahead_used_; }

  // Frees everything.
  void Clear();

 private:
  enum class Phase { kPrefix, kPayload, kInflating, kComplete };

  // Takes from the front of `bytes` what belongs to the message that was asked for.
  void Take(absl::string_view& bytes);
  void Keep(absl::string_view bytes);
  void OnPrefix();
  absl::Status TooLarge() const;
  // Where the memory of messages is charged.
  MessageAccount MessagesAccount() const {
    return options_.messages_are_charged ? MessageAccount() : options_.account;
  }
  void OnPayload();
  void Fail(MessageFailure failure) { failure_ = std::move(failure); }

  const Options options_;
  bool wanted_ = false;
  bool ended_ = false;
  std::optional<MessageFailure> failure_;

  Phase phase_ = Phase::kPrefix;
  std::array<char, kMessagePrefixBytes> prefix_{};
  size_t prefix_size_ = 0;
  bool compressed_ = false;
  size_t length_ = 0;
  size_t filled_ = 0;
  std::shared_ptr<MessageMemory> memory_;
  std::optional<MessageInflater> inflater_;

  // Bytes beyond the message, of which the first `ahead_used_` were taken. Charged as a whole.
  std::string ahead_;
  size_t ahead_used_ = 0;
  ByteCharge ahead_charge_;
};

}  // namespace saccade::server
