#include "client/cli/commands/bench.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/commands/connect.h"
#include "client/cli/commands/request_options.h"
#include "client/cli/commands/task.h"
#include "client/cli/drawing/drawing.h"
#include "client/cli/input/input_file.h"
#include "client/cli/input/inputs.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/json.h"
#include "client/cli/output/names.h"
#include "client/cli/output/progress_bar.h"
#include "client/cli/output/table.h"
#include "client/load/blocking_calls.h"
#include "client/load/load.h"
#include "client/load/stage_summary.h"

namespace saccade::client {
namespace {

using Ask =
    std::function<absl::StatusOr<AnyAnswer>(Client& client, const std::string& model, const Pictures& files)>;

// How to make a request for a task.
struct Kind {
  size_t files = 1;
  // Which files of a folder are used.
  const FileKind* files_are = &kPictureFiles;
  Ask ask;
};

// Upper bound for all files together: they are held in memory, so that reading them is not part of the
// measurement.
constexpr int64_t kMaxFilesBytes = int64_t{2} << 30;

// Returns the kinds by the daemon's name of the task. `request` are the options of every request.
std::map<std::string, Kind> Kinds(const RequestOptions& request) {
  std::map<std::string, Kind> kinds;
  kinds["classification"].ask = [=](Client& client, const std::string& model, const Pictures& files) {
    return client.Classify(model, files[0], {.request = request});
  };
  kinds["detection"].ask = [=](Client& client, const std::string& model, const Pictures& files) {
    return client.Detect(model, files[0], {.request = request});
  };
  kinds["segmentation"].ask = [=](Client& client, const std::string& model, const Pictures& files) {
    return client.Segment(model, files[0], {.request = request});
  };
  kinds["stereo"] = {2, &kPictureFiles, [=](Client& client, const std::string& model, const Pictures& files) {
                       return client.Stereo(model, files[0], files[1], {.request = request});
                     }};
  kinds["depth"].ask = [=](Client& client, const std::string& model, const Pictures& files) {
    return client.Depth(model, files[0], {.request = request, .format = DisparityFormat::kPng16});
  };
  kinds["embedding"].ask = [=](Client& client, const std::string& model, const Pictures& files) {
    return client.Embed(model, files[0], {.request = request});
  };
  kinds["actions"].files_are = &kVideoFiles;
  kinds["actions"].ask = [=](Client& client, const std::string& model, const Pictures& files) {
    return client.Actions(model, files[0], {.request = request});
  };
  kinds["restoration"].files_are = &kVolumeFiles;
  kinds["restoration"].ask = [=](Client& client, const std::string& model, const Pictures& files) {
    return client.Restore(model, VolumeFrom(files[0]), {.request = request});
  };
  return kinds;
}

// One request's files, and the name of the first for errors.
struct BenchRequest {
  std::string name;
  Pictures files;
};

// Whether a file is left out, and the run goes on without it. A name that does not exist is rather a typing
// error.
bool IsLeftOut(const absl::Status& unread) {
  return !absl::IsNotFound(unread) && !absl::IsFailedPrecondition(unread);
}

// Returns the requests, each with as many files as the task takes; empty after printing an error.
std::vector<BenchRequest> ReadRequests(const BenchCommand& command, const Kind& kind, Console& console) {
  const auto inputs = ExpandInputs(command.inputs, *kind.files_are);
  if (!inputs.ok()) {
    Complain(console, inputs.status().message());
    return {};
  }
  if (inputs->size() % kind.files != 0) {
    Complain(
        console,
        absl::StrCat("the model takes pairs of files, left and right in turn; the number of files is odd: ",
                     inputs->size()));
    return {};
  }
  std::vector<BenchRequest> requests;
  int64_t room = kMaxFilesBytes;
  for (size_t at = 0; at < inputs->size(); at += kind.files) {
    BenchRequest request{.name = (*inputs)[at], .files = {}};
    for (size_t file = at; file < at + kind.files; ++file) {
      const std::string& input = (*inputs)[file];
      auto bytes =
          ReadInput(input, console.in, command.connection.max_message_bytes, "an input of the model");
      if (!bytes.ok()) {
        const bool left_out = IsLeftOut(bytes.status());
        Complain(console, absl::StrCat(input, " ", bytes.status().message(), left_out ? "; left out" : ""));
        if (!left_out) return {};
        break;
      }
      room -= static_cast<int64_t>(bytes->size());
      if (room < 0) {
        Complain(console, absl::StrCat("the files up to ", input, " exceed the ", kMaxFilesBytes,
                                       " bytes that can be held in memory; name fewer files"));
        return {};
      }
      request.files.push_back(*std::move(bytes));
    }
    if (request.files.size() == kind.files) requests.push_back(std::move(request));
  }
  if (requests.empty()) Complain(console, "no file can be sent; name files that the model takes");
  return requests;
}

// Names the file in the error of a call whose input is at fault.
absl::Status WithFile(const absl::Status& status, const std::string& file) {
  if (!absl::IsInvalidArgument(status)) return status;
  return {status.code(), absl::StrCat(file, ": ", status.message())};
}

CallResult ResultOf(const absl::StatusOr<AnyAnswer>& answer, const BenchRequest& request) {
  if (!answer.ok()) return {.status = WithFile(answer.status(), request.name)};
  const auto& common = std::visit([](const auto& any) -> const Answer& { return any; }, *answer);
  return {.status = absl::OkStatus(), .timings = common.timings, .batch_size = common.batch_size};
}

std::string InMilliseconds(absl::Duration time) {
  return absl::StrFormat("%.2f", absl::ToDoubleMilliseconds(time));
}

// Requests sent per second of --seconds. What is awaited after that is not part of it.
double SentPerSecond(const BenchCommand& command, const StageSummary& summary) {
  return static_cast<double>(summary.requests) / command.seconds;
}

// Returns for example "9 of 1,033 requests failed: 8 DEADLINE_EXCEEDED, 1 UNAVAILABLE".
std::string FailuresByCode(const StageSummary& summary) {
  const std::string counts =
      absl::StrJoin(summary.failures, ", ", [](std::string* text, const auto& failure) {
        absl::StrAppend(text, WithThousands(failure.second.calls), " ", failure.first);
      });
  return absl::StrCat(WithThousands(static_cast<int64_t>(summary.failed)), " of ",
                      WithThousands(static_cast<int64_t>(summary.requests)), " requests failed: ", counts);
}

void PrintText(const BenchCommand& command, const StageSummary& summary, Console& console) {
  console.out << Printable(command.model) << "  "
              << absl::StrFormat("%s answers of %s requests in %.1f s, %.1f a second",
                                 WithThousands(static_cast<int64_t>(summary.answers)),
                                 WithThousands(static_cast<int64_t>(summary.requests)),
                                 absl::ToDoubleSeconds(summary.elapsed), summary.per_second)
              << (command.rate > 0 ? absl::StrFormat(" (%.10g were due)", command.rate)
                                   : absl::StrFormat(" (%d at once)", command.concurrency))
              << "\n\n";
  std::vector<std::vector<std::string>> rows;
  for (const LoadStage& stage : summary.stages) {
    const Latency& latency = stage.latency;
    rows.push_back({stage.name, InMilliseconds(latency.p50), InMilliseconds(latency.p90),
                    InMilliseconds(latency.p99), InMilliseconds(latency.mean), stage.description});
  }
  PrintTable(console, {{"MILLISECONDS"}, {"P50", true}, {"P90", true}, {"P99", true}, {"MEAN", true}, {""}},
             rows);
  console.out << absl::StrFormat("\nbatches: %.1f pictures in the mean", summary.mean_batch_size);
  for (const auto& [size, count] : summary.batch_sizes) {
    console.out << absl::StrFormat("%s %d (%.0f%%)", size == summary.batch_sizes.begin()->first ? ":" : ",",
                                   size,
                                   100.0 * static_cast<double>(count) / static_cast<double>(summary.answers));
  }
  console.out << '\n';
  for (const auto& [code, failure] : summary.failures) {
    console.out << absl::StrCat(code, ": ", failure.calls,
                                " requests; the first: ", Printable(failure.first_message))
                << '\n';
  }
  if (summary.not_sent > 0) {
    console.out << absl::StrFormat(
        "not sent: %s of %s requests that were due within %.10g s; asked rate %.10g a second, reached rate "
        "%.1f; the latencies leave them out\n",
        WithThousands(static_cast<int64_t>(summary.not_sent)),
        WithThousands(static_cast<int64_t>(summary.not_sent + summary.requests)), command.seconds,
        command.rate, SentPerSecond(command, summary));
  }
  if (command.rate > 0 && summary.held * 100 > summary.requests) {
    console.out << absl::StrFormat(
        "%s requests were sent late, because %d were in flight: the daemon is slower than that, or "
        "--concurrency is too small\n",
        WithThousands(static_cast<int64_t>(summary.held)), command.concurrency);
  }
  if (command.rate > 0 && summary.woken_late * 100 > summary.requests) {
    console.out << absl::StrFormat(
        "%s requests were sent late, because this machine did not run saccade in time: it is busy; the "
        "daemon did not cause that\n",
        WithThousands(static_cast<int64_t>(summary.woken_late)));
  }
}

void PrintJson(const BenchCommand& command, const StageSummary& summary, Console& console) {
  nlohmann::ordered_json document = {{"version", 1},
                                     {"model", command.model},
                                     {"rate", command.rate},
                                     {"concurrency", command.concurrency},
                                     {"requests", summary.requests},
                                     {"not_sent", summary.not_sent},
                                     {"sent_per_second", SentPerSecond(command, summary)},
                                     {"answers", summary.answers},
                                     {"elapsed_ms", Milliseconds(summary.elapsed)},
                                     {"answers_per_second", summary.per_second},
                                     {"sent_late", summary.held},
                                     {"woken_late", summary.woken_late},
                                     {"mean_batch_size", summary.mean_batch_size}};
  for (const LoadStage& stage : summary.stages) {
    const Latency& latency = stage.latency;
    document["stages_ms"][stage.name] = {{"p50", Milliseconds(latency.p50)},
                                         {"p90", Milliseconds(latency.p90)},
                                         {"p99", Milliseconds(latency.p99)},
                                         {"mean", Milliseconds(latency.mean)}};
  }
  document["batch_sizes"] = nlohmann::ordered_json::object();
  for (const auto& [size, count] : summary.batch_sizes) document["batch_sizes"][absl::StrCat(size)] = count;
  document["failures"] = nlohmann::ordered_json::object();
  for (const auto& [code, failure] : summary.failures)
    document["failures"][code] = {{"requests", failure.calls}, {"first", failure.first_message}};
  console.out << Dump(document);
}

int Plot(const BenchCommand& command, const LoadResult& result, const StageSummary& summary,
         Console& console) {
  LoadDrawing drawing{.title = command.model, .points = {}, .stages = {}};
  for (const LoadSample& sample : result.samples)
    drawing.points.push_back({absl::ToDoubleSeconds(sample.due), absl::ToDoubleMilliseconds(sample.latency()),
                              sample.status.ok()});
  for (const LoadStage& stage : summary.stages) {
    const Latency& latency = stage.latency;
    drawing.stages.push_back({stage.name, absl::ToDoubleMilliseconds(latency.p50),
                              absl::ToDoubleMilliseconds(latency.p90),
                              absl::ToDoubleMilliseconds(latency.p99)});
  }
  if (const absl::Status drawn = DrawLoad(drawing, command.plot); !drawn.ok()) {
    Complain(console, absl::StrCat("--plot ", command.plot, ": ", drawn.message()));
    return kExitFailure;
  }
  if (!command.quiet) console.err << "wrote " << Printable(command.plot) << std::endl;
  return kExitOk;
}

}  // namespace

int RunBench(const BenchCommand& command, Console& console) {
  const auto client = ConnectOrComplain(console, command.connection);
  if (client == nullptr) return kExitUsage;
  const auto model = client->GetModel(command.model, command.version);
  if (!model.ok()) return ComplainOf(console, command.connection, model.status());
  if (model->state != ModelState::kReady) {
    Complain(console, absl::StrCat("model '", command.model, "' is ", StateName(model->state),
                                   model->reason.empty() ? "" : absl::StrCat(": ", model->reason),
                                   "; only a ready model can be measured (saccade status shows when it is)"));
    return kExitFailure;
  }
  const auto kinds = Kinds(RequestOf(command));
  const auto kind = kinds.find(model->task);
  if (kind == kinds.end()) {
    Complain(console,
             absl::StrCat("model '", command.model, "' is for ", model->task,
                          ", which this program does not support; update it to the daemon's version"));
    return kExitFailure;
  }
  const std::vector<BenchRequest> requests = ReadRequests(command, kind->second, console);
  if (requests.empty()) return kExitUsage;

  ProgressBar bar(console, command.model, !command.quiet);
  BlockingCalls calls(command.concurrency, [&](size_t number) {
    const BenchRequest& request = requests[number % requests.size()];
    return ResultOf(kind->second.ask(*client, command.model, request.files), request);
  });
  const LoadResult result = RunLoad({.rate = command.rate,
                                     .duration = absl::Seconds(command.seconds),
                                     .connections = command.concurrency,
                                     .max_in_flight = command.concurrency,
                                     .seed = static_cast<uint64_t>(command.seed)},
                                    calls.starter(), [&](double done, size_t answers) {
                                      bar.Show(absl::StrCat(answers, " answers"), done);
                                    });
  bar.Hide();
  const StageSummary summary = SummariseStages(result);
  if (summary.requests == 0) {
    Complain(console, absl::StrCat("no request was due within ", command.seconds,
                                   " seconds; make --seconds longer or --rate larger"));
    return kExitUsage;
  }
  if (summary.failed > 0) Complain(console, FailuresByCode(summary));
  const absl::Status failure = result.FirstFailure();
  if (summary.answers == 0) return ComplainOf(console, command.connection, failure);
  if (command.format == Format::kJson) {
    PrintJson(command, summary, console);
  } else {
    PrintText(command, summary, console);
  }
  const int plotted = command.plot.empty() ? kExitOk : Plot(command, result, summary, console);
  if (!Flush(console)) return kExitFailure;
  return plotted == kExitOk ? ExitCodeOf(failure) : plotted;
}

}  // namespace saccade::client
