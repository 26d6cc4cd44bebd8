// Decodes one picture repeatedly on one thread, as the daemon would for a classifier:
//   saccade_time_decode FILE SIDE SECONDS [thread|process|both]
// Prints the number of decoded pictures and the elapsed seconds. Used by tools/bench_server. "process"
// decodes in a worker process, as with --decode=process. "both" takes turns of 50 pictures of each and
// prints, for each, the medians of a picture's microseconds and microseconds of processor time, of all
// processes.
#include <sys/types.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "server/core/clock.h"
#include "server/decode/prepare.h"
#include "server/decode/workers/worker_decoder.h"

namespace saccade::server {
namespace {

absl::Status DecodeOnce(const Decoder& decoder, const Picture& picture, const models::ImageInput& input,
                        std::vector<float>& out) {
  const auto header = decoder.ReadHeader(picture, nullptr);
  if (!header.ok()) return header.status();
  const auto decoded = decoder.Decode(picture, *header, input, std::nullopt, nullptr);
  if (!decoded.ok()) return decoded.status();
  return WriteInput(*decoded, input, models::PlacementOf(input, decoded->sent), absl::MakeSpan(out));
}

// One way to decode, and what its turns took for a picture, in microseconds.
struct Candidate {
  const char* name;
  const Decoder* decoder;
  std::vector<double> wall = {};
  std::vector<double> processor = {};
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// Processor time of this process and of its descendants that decode, in microseconds.
double ProcessorTime(pid_t worker) {
  const auto of = [](clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) * 1e6 + static_cast<double>(time.tv_nsec) / 1e3;
  };
  clockid_t clock_of_worker{};
  const bool found = worker != 0 && clock_getcpuclockid(worker, &clock_of_worker) == 0;
  return of(CLOCK_PROCESS_CPUTIME_ID) + (found ? of(clock_of_worker) : 0);
}

// `turns` are repeated until `duration` is over. `worker` is the process that decodes for one of them.
int Run(std::vector<Candidate> turns, int turn, pid_t worker, const std::string& path, int side,
        absl::Duration duration) {
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
    for (Candidate& candidate : turns) {
      const absl::Time began = absl::Now();
      const double used = ProcessorTime(worker);
      for (int i = 0; i < turn; ++i, ++pictures) {
        absl::Status decoded = DecodeOnce(*candidate.decoder, picture, input, out);
        if (decoded.ok()) continue;
        std::fprintf(stderr, "%s: %s\n", path.c_str(), std::string(decoded.message()).c_str());
        return EXIT_FAILURE;
      }
      candidate.wall.push_back(absl::ToDoubleMicroseconds(absl::Now() - began) / turn);
      candidate.processor.push_back((ProcessorTime(worker) - used) / turn);
    }
  }
  if (turns.size() == 1) {
    std::printf("%d %.6f\n", pictures, absl::ToDoubleSeconds(absl::Now() - start));
    return EXIT_SUCCESS;
  }
  for (const Candidate& candidate : turns)
    std::printf("%s %.1f %.1f\n", candidate.name, Median(candidate.wall), Median(candidate.processor));
  return EXIT_SUCCESS;
}

int Main(const std::string& how, const std::string& path, int side, absl::Duration duration) {
  const ThreadDecoder thread{DecodeLimits()};
  if (how == "thread") return Run({{"thread", &thread}}, 1, 0, path, side, duration);
  WorkerPoolOptions options;
  options.program =
      (std::filesystem::read_symlink("/proc/self/exe").parent_path() / "saccade-decode-worker").string();
  options.kept_bytes = uint64_t{64} << 20;
  auto pool = WorkerPool::Create(std::move(options), Clock::Real());
  if (!pool.ok()) {
    std::fprintf(stderr, "%s\n", std::string(pool.status().message()).c_str());
    return EXIT_FAILURE;
  }
  const pid_t worker = (*(*pool)->Acquire())->pid();
  const WorkerDecoder process(DecodeLimits(), pool->get());
  if (how == "process") return Run({{"process", &process}}, 1, worker, path, side, duration);
  constexpr int kTurn = 50;
  return Run({{"thread", &thread}, {"process", &process}}, kTurn, worker, path, side, duration);
}

}  // namespace
}  // namespace saccade::server

int main(int argc, char** argv) {
  const std::string how = argc == 5 ? argv[4] : "thread";
  if (argc >= 4 && argc <= 5 && (how == "thread" || how == "process" || how == "both"))
    return saccade::server::Main(how, argv[1], std::atoi(argv[2]),
                                 absl::Seconds(std::strtod(argv[3], nullptr)));
  std::fprintf(stderr, "saccade_time_decode: expected FILE SIDE SECONDS [thread|process|both]\n");
  return EXIT_FAILURE;
}
