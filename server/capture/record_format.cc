#include "server/capture/record_format.h"

#include <zlib.h>
#include <zstd.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "server/core/sha256.h"

namespace saccade::server {
namespace {

using Json = nlohmann::ordered_json;

// The fastest level: JPEG files do not shrink, and raw pixels shrink about as far as they ever do.
constexpr int kLevel = 1;

struct FreeContext {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};

Json ToJson(const CapturedCall::Headers& headers) {
  Json json = Json::object();
  for (const auto& [name, value] : headers) json[name] = value;
  return json;
}

void AppendLength(std::string& to, size_t length) {
  for (int shift = 0; shift < 32; shift += 8) to.push_back(static_cast<char>((length >> shift) & 0xff));
}

std::string TimeText(absl::Time time) {
  return absl::FormatTime("%Y-%m-%d%ET%H:%M:%E9SZ", time, absl::UTCTimeZone());
}

}  // namespace

std::string DescribeCall(const CapturedCall& call, CapturedPixels pixels, const std::string& build) {
  const auto microseconds = [](absl::Duration time) { return absl::ToInt64Microseconds(time); };
  const Timings& timings = call.served.timings;
  Json json = {{"time", TimeText(call.arrival)},
               {"arrival_ns", absl::ToUnixNanos(call.arrival)},
               {"transport", call.transport},
               {"target", call.target},
               {"headers", ToJson(call.headers)},
               {"answer_headers", ToJson(call.answer_headers)},
               {"model", call.model},
               {"version", call.served.version},
               {"id", call.id},
               {"status", absl::StatusCodeToString(call.status.code())},
               {"message", std::string(call.status.message())},
               {"http_status", call.http_status},
               {"timings_us",
                {{"decode", microseconds(timings.decode)},
                 {"queue", microseconds(timings.queue)},
                 {"infer", microseconds(timings.infer)},
                 {"encode", microseconds(timings.encode)},
                 {"total", microseconds(call.ended - call.arrival)}}},
               {"build", build},
               {"pixels", std::string(NameOf(pixels))},
               {"request_bytes", call.request_bytes},
               {"answer_bytes", call.answer_bytes}};
  if (const ModelIdentity* identity = call.served.identity.get()) {
    json["weights_sha256"] = identity->weights_sha256;
    json["precision"] = identity->precision;
    json["instruction_set"] = identity->instruction_set;
  }
  if (pixels == CapturedPixels::kHash) {
    json["request_sha256"] = Sha256Hex(call.request);
    json["answer_sha256"] = Sha256Hex(call.answer);
  }
  // Names that are not UTF-8 come from clients' paths.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string MakeFrame(const CapturedCall& call, CapturedPixels pixels, const std::string& build) {
  const std::string json = DescribeCall(call, pixels, build);
  std::string record;
  AppendLength(record, json.size());
  record += json;
  if (pixels == CapturedPixels::kFull) {
    record.reserve(record.size() + call.request.size() + call.answer.size());
    record += call.request;
    record += call.answer;
  }
  // Creating one takes longer than a small call.
  thread_local const std::unique_ptr<ZSTD_CCtx, FreeContext> context(ZSTD_createCCtx());
  if (context == nullptr) return "";
  std::string packed(ZSTD_compressBound(record.size()), '\0');
  const size_t size =
      ZSTD_compressCCtx(context.get(), packed.data(), packed.size(), record.data(), record.size(), kLevel);
  if (ZSTD_isError(size) != 0 || size > std::numeric_limits<int32_t>::max()) return "";
  packed.resize(size);
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(packed.data()), static_cast<uInt>(size));
  std::string frame;
  frame.reserve(kFrameHead + size);
  AppendLength(frame, size);
  AppendLength(frame, sum);
  frame += packed;
  return frame;
}

}  // namespace saccade::server
