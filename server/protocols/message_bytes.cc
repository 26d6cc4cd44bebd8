#include "server/protocols/message_bytes.h"

#include <cstdint>

#include "absl/strings/str_cat.h"
#include "server/grpc/message_size.h"
#include "server/grpc/pieces_stream.h"

namespace saccade::server {
namespace {

// What a smaller message takes is bounded well enough by the number of requests in flight.
constexpr size_t kSmallMessage = 512;

absl::StatusOr<ByteCharge> Charge(const BytePieces& bytes, const google::protobuf::Message& message,
                                  ByteLedger* ledger, absl::string_view client) {
  const auto size = ParsedSize(bytes, *message.GetDescriptor());
  if (!size.ok()) return size.status();
  if (bytes.size() <= kSmallMessage) return ByteCharge();
  if (ledger == nullptr) {
    if (*size <= kMaxUnchargedBytes) return ByteCharge();
    return absl::InvalidArgumentError(absl::StrCat("the ", message.GetDescriptor()->full_name(), " takes ",
                                                   *size, " bytes when it is parsed, more than the ",
                                                   kMaxUnchargedBytes, " that are allowed; send less in it"));
  }
  const int64_t more = *size - 2 * static_cast<int64_t>(bytes.size());
  if (more <= 0) return ByteCharge();
  return ledger->Charge(client, more);
}

}  // namespace

absl::StatusOr<ByteCharge> ParseMessage(const BytePieces& bytes, google::protobuf::Message* message,
                                        ByteLedger* ledger, absl::string_view client) {
  auto charge = Charge(bytes, *message, ledger, client);
  if (!charge.ok()) return charge;
  PiecesStream stream(bytes);
  if (message->ParseFromZeroCopyStream(&stream)) return charge;
  return NoSuchMessage(*message->GetDescriptor());
}

}  // namespace saccade::server
