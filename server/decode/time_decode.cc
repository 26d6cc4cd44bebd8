// Decodes one picture repeatedly on one thread, as the daemon would for a classifier:
//   saccade_time_decode FILE SIDE SECONDS
// Prints the number of decoded pictures and the elapsed seconds. Used by tools/bench_server.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "server/decode/prepare.h"

namespace saccade::server {
namespace {

absl::Status DecodeOnce(const Picture& picture, const models::ImageInput& input, std::vector<float>& out) {
  const auto header = ReadHeader(picture, {});
  if (!header.ok()) return header.status();
  const auto decoded = DecodePicture(picture, *header, input);
  if (!decoded.ok()) return decoded.status();
  return WriteInput(*decoded, input, models::PlacementOf(input, decoded->sent), absl::MakeSpan(out));
}

int Run(const std::string& path, int side, absl::Duration duration) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  const Picture picture = EncodedPicture{.data = {.owner = nullptr, .bytes = bytes}};
  models::ImageInput input;
  input.height = input.width = side;
  input.short_side = models::CropShortSide(side);
  std::vector<float> out(size_t{3} * side * side);
  int pictures = 0;
  const absl::Time start = absl::Now();
  while (absl::Now() < start + duration) {
    if (absl::Status decoded = DecodeOnce(picture, input, out); !decoded.ok()) {
      std::fprintf(stderr, "%s: %s\n", path.c_str(), std::string(decoded.message()).c_str());
      return EXIT_FAILURE;
    }
    ++pictures;
  }
  std::printf("%d %.6f\n", pictures, absl::ToDoubleSeconds(absl::Now() - start));
  return EXIT_SUCCESS;
}

}  // namespace
}  // namespace saccade::server

int main(int argc, char** argv) {
  if (argc == 4)
    return saccade::server::Run(argv[1], std::atoi(argv[2]), absl::Seconds(std::strtod(argv[3], nullptr)));
  std::fprintf(stderr, "saccade_time_decode: expected FILE SIDE SECONDS\n");
  return EXIT_FAILURE;
}
