#include "server/grpc/message_reader.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/grpc/message_prefix.h"
#include "server/http/exchange.h"

namespace saccade::server {
void MessageReader::Want() {
  wanted_ = true;
  if (ahead() == 0 || failure_) return;
  absl::string_view bytes = absl::string_view(ahead_).substr(ahead_used_);
  const size_t before = bytes.size();
  Take(bytes);
  ahead_used_ += before - bytes.size();
  if (ahead() > 0) return;
  std::string().swap(ahead_);
  ahead_used_ = 0;
  ahead_charge_.Release();
}

void MessageReader::Add(absl::string_view bytes) {
  if (failure_) return;
  // Kept bytes come first.
  if (ahead() == 0) Take(bytes);
  if (!bytes.empty() && !failure_) Keep(bytes);
}

void MessageReader::Keep(absl::string_view bytes) {
  if (options_.refuses_more) {
    return Fail({absl::InvalidArgumentError(absl::StrCat(
                     bytes.size(), " bytes came after the call's message; this method takes one message")),
                 Refusal::kMalformed});
  }
  if (ahead_charge_.bytes() == 0) {
    auto charge = options_.account.Charge(Exchange::kFirstBodyBytes);
    if (!charge.ok()) return Fail({charge.status(), Refusal::kBytes});
    ahead_charge_ = *std::move(charge);
  }
  ahead_.erase(0, std::exchange(ahead_used_, 0));
  ahead_.append(bytes.data(), bytes.size());
}

void MessageReader::Take(absl::string_view& bytes) {
  if (!wanted_) return;
  if (phase_ == Phase::kPrefix) {
    const size_t size = std::min(kMessagePrefixBytes - prefix_size_, bytes.size());
    std::memcpy(prefix_.data() + prefix_size_, bytes.data(), size);
    prefix_size_ += size;
    bytes.remove_prefix(size);
    if (prefix_size_ < kMessagePrefixBytes) return;
    OnPrefix();
    if (failure_) return;
  }
  if (phase_ != Phase::kPayload) return;
  const size_t size = std::min(length_ - filled_, bytes.size());
  if (size > 0) std::memcpy(memory_->bytes.get() + filled_, bytes.data(), size);
  filled_ += size;
  bytes.remove_prefix(size);
  if (filled_ == length_) OnPayload();
}

void MessageReader::OnPrefix() {
  if (prefix_[0] != 0 && prefix_[0] != 1) {
    return Fail(
        {absl::InternalError(absl::StrCat("the call's body is not gRPC's: a message begins with the flag ",
                                          static_cast<int>(static_cast<unsigned char>(prefix_[0])),
                                          ", expected 0 (as it is) or 1 (compressed)")),
         Refusal::kMalformed});
  }
  compressed_ = prefix_[0] == 1;
  length_ = LengthIn(prefix_);
  if (compressed_ && options_.encoding == MessageEncoding::kIdentity) {
    return Fail(
        {absl::InternalError("a message is marked as compressed, but the call names no grpc-encoding; "
                             "expected grpc-encoding: gzip or deflate"),
         Refusal::kMalformed});
  }
  if (length_ > static_cast<uint64_t>(options_.bounds.max_message_bytes)) {
    return Fail({TooLarge(), Refusal::kBodyTooLarge});
  }
  phase_ = Phase::kPayload;
  if (length_ == 0) return;
  memory_ = std::make_shared<MessageMemory>();
  if (auto failure = memory_->Allocate(MessagesAccount(), length_)) Fail(*std::move(failure));
}

absl::Status MessageReader::TooLarge() const {
  const int64_t max_bytes = options_.bounds.max_message_bytes;
  if (options_.bounds.is_of_method) {
    return absl::ResourceExhaustedError(absl::StrCat("a message has ", length_, " bytes, more than the ",
                                                     max_bytes,
                                                     " that this method takes; send a smaller one"));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("a message has ", length_, " bytes, more than the ", max_bytes,
                   " of the server's --max-message-bytes; send smaller messages, or start the server with a "
                   "larger bound"));
}

void MessageReader::OnPayload() {
  // gRPC's clients leave an empty message as it is and yet may mark it.
  if (!compressed_ || length_ == 0) {
    phase_ = Phase::kComplete;
    return;
  }
  const absl::string_view bytes(memory_->bytes.get(), length_);
  inflater_.emplace(options_.encoding, BytePieces({bytes.data(), bytes.size()}, std::move(memory_)),
                    options_.bounds, MessagesAccount());
  phase_ = Phase::kInflating;
}

MessageReader::State MessageReader::Advance(size_t max_inflated) {
  if (failure_) return State::kFailed;
  if (phase_ == Phase::kInflating) {
    if (auto failure = inflater_->Step(max_inflated)) {
      inflater_.reset();
      Fail(*std::move(failure));
      return State::kFailed;
    }
    if (!inflater_->done()) return State::kWorking;
    phase_ = Phase::kComplete;
  }
  if (phase_ == Phase::kComplete) return State::kMessage;
  if (!wanted_ || !ended_) return State::kWaiting;
  if (received() == 0) return State::kEnd;
  Fail({absl::InternalError(absl::StrCat(
            "the call's body ended within a message: ", missing(),
            prefix_size_ < kMessagePrefixBytes ? " bytes of its prefix" : " of its bytes", " are missing")),
        Refusal::kMalformed});
  return State::kFailed;
}

BytePieces MessageReader::TakeMessage() {
  BytePieces message;
  if (inflater_) {
    message = inflater_->Take();
    inflater_.reset();
  } else if (memory_ != nullptr) {
    const char* const bytes = memory_->bytes.get();
    message = BytePieces({bytes, length_}, std::move(memory_));
    memory_ = nullptr;
  }
  wanted_ = false;
  phase_ = Phase::kPrefix;
  prefix_size_ = 0;
  length_ = 0;
  filled_ = 0;
  return message;
}

void MessageReader::Clear() {
  wanted_ = false;
  phase_ = Phase::kPrefix;
  prefix_size_ = 0;
  length_ = 0;
  filled_ = 0;
  memory_.reset();
  inflater_.reset();
  std::string().swap(ahead_);
  ahead_used_ = 0;
  ahead_charge_.Release();
}

}  // namespace saccade::server
