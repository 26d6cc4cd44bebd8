#include "server/http/content_coding.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <new>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/core/retry_hint.h"

namespace saccade::server {
namespace {

constexpr int kGzipFormat = 16;
// The library's counters have this type.
constexpr size_t kMaxAtOnce = std::numeric_limits<uInt>::max();

int FormatOf(ContentCoding coding) { return MAX_WBITS + (coding == ContentCoding::kGzip ? kGzipFormat : 0); }

Bytef* Bytes(absl::string_view bytes) {
  return const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
}

// The weight in "gzip;q=0.5". 1 if there is none, 0 if it is no number.
double WeightOf(absl::string_view parameters) {
  parameters = absl::StripAsciiWhitespace(parameters);
  if (parameters.empty()) return 1;
  double weight = 0;
  const bool said =
      absl::StartsWithIgnoreCase(parameters, "q=") && absl::SimpleAtod(parameters.substr(2), &weight);
  return said ? weight : 0;
}

// Calls `found` with each known coding of an Accept-Encoding and its weight, until it returns false.
void ForEachCoding(absl::string_view header, absl::FunctionRef<bool(ContentCoding, double)> found) {
  for (const absl::string_view entry : absl::StrSplit(header, ',', absl::SkipWhitespace())) {
    const std::pair<absl::string_view, absl::string_view> parts =
        absl::StrSplit(entry, absl::MaxSplits(';', 1));
    const auto coding = ContentCodingOf(parts.first);
    if (coding && !found(*coding, WeightOf(parts.second))) return;
  }
}

}  // namespace

absl::string_view NameOf(ContentCoding coding) {
  switch (coding) {
    case ContentCoding::kGzip:
      return "gzip";
    case ContentCoding::kDeflate:
      return "deflate";
    case ContentCoding::kIdentity:
      break;
  }
  return "identity";
}

std::optional<ContentCoding> ContentCodingOf(absl::string_view header) {
  header = absl::StripAsciiWhitespace(header);
  if (header.empty()) return ContentCoding::kIdentity;
  for (const auto coding : {ContentCoding::kIdentity, ContentCoding::kGzip, ContentCoding::kDeflate}) {
    if (absl::EqualsIgnoreCase(header, NameOf(coding))) return coding;
  }
  if (absl::EqualsIgnoreCase(header, "x-gzip")) return ContentCoding::kGzip;
  return std::nullopt;
}

ContentCoding AcceptedCoding(absl::string_view header) {
  ContentCoding best = ContentCoding::kIdentity;
  double max = 0;
  ForEachCoding(header, [&](ContentCoding coding, double weight) {
    if (weight > max) best = coding;
    max = std::max(max, weight);
    return true;
  });
  return best;
}

bool Accepts(absl::string_view header, ContentCoding coding) {
  bool accepted = false;
  ForEachCoding(header, [&](ContentCoding named, double weight) {
    accepted = named == coding && weight > 0;
    return named != coding;
  });
  return accepted;
}

struct ContentDecoder::State {
  z_stream stream{};
  // The end of a compressed file was reached. In gzip another may follow.
  bool at_end = false;
};

ContentDecoder::ContentDecoder(ContentCoding coding) : coding_(coding), state_(std::make_unique<State>()) {
  if (inflateInit2(&state_->stream, FormatOf(coding)) != Z_OK) throw std::bad_alloc();
}

ContentDecoder::~ContentDecoder() { inflateEnd(&state_->stream); }

absl::Status ContentDecoder::Write(absl::string_view bytes,
                                   absl::FunctionRef<bool(absl::string_view)> decoded) {
  z_stream& stream = state_->stream;
  std::array<char, size_t{64} << 10> buffer;
  stream.next_in = Bytes(bytes);
  stream.avail_in = static_cast<uInt>(std::min(bytes.size(), kMaxAtOnce));
  // The library has more output as long as it fills the buffer.
  for (bool full = false; stream.avail_in > 0 || full;) {
    if (state_->at_end) {
      if (coding_ != ContentCoding::kGzip)
        return absl::InvalidArgumentError("bytes follow the end of the deflate body");
      inflateReset(&stream);
      state_->at_end = false;
    }
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = buffer.size();
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_MEM_ERROR) return OutOfMemory("no memory to decode the body; try again later");
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      return absl::InvalidArgumentError(
          absl::StrCat("the body is not ", NameOf(coding_), " as its Content-Encoding says",
                       stream.msg == nullptr ? "" : absl::StrCat(": ", stream.msg)));
    }
    const size_t size = buffer.size() - stream.avail_out;
    if (size > 0 && !decoded({buffer.data(), size})) return absl::OkStatus();
    state_->at_end = result == Z_STREAM_END;
    full = stream.avail_out == 0 && !state_->at_end;
  }
  return absl::OkStatus();
}

absl::Status ContentDecoder::Finish() const {
  if (state_->at_end) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("the ", NameOf(coding_), " body is cut off before its end"));
}

std::string Encode(ContentCoding coding, absl::Span<const absl::string_view> pieces) {
  z_stream stream{};
  constexpr int kMemoryLevel = 8;
  if (deflateInit2(&stream, Z_BEST_SPEED, Z_DEFLATED, FormatOf(coding), kMemoryLevel, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    throw std::bad_alloc();
  }
  const absl::Cleanup end = [&stream] { deflateEnd(&stream); };
  std::string encoded;
  std::array<char, size_t{64} << 10> buffer;
  const auto run = [&](absl::string_view bytes, int flush) {
    stream.next_in = Bytes(bytes);
    stream.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = buffer.size();
      deflate(&stream, flush);
      encoded.append(buffer.data(), buffer.size() - stream.avail_out);
    } while (stream.avail_out == 0);
  };
  for (absl::string_view piece : pieces) {
    for (; !piece.empty(); piece.remove_prefix(std::min(piece.size(), kMaxAtOnce))) {
      run(piece.substr(0, kMaxAtOnce), Z_NO_FLUSH);
    }
  }
  run("", Z_FINISH);
  return encoded;
}

}  // namespace saccade::server
