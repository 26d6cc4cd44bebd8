// Includes models/ for the tables of networks.
#include "client/cli/commands/params.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/output/failure.h"
#include "client/cli/output/json.h"
#include "client/cli/output/table.h"
#include "models/api/error.h"
#include "models/api/registry.h"

namespace saccade::client {
namespace {

std::string Percentage(int64_t part, int64_t whole) {
  return whole == 0 ? "-" : absl::StrFormat("%.2f%%", 100.0 * part / whole);
}

double Ratio(int64_t part, int64_t whole) { return whole == 0 ? 0.0 : static_cast<double>(part) / whole; }

// Includes biases and batch norms.
int64_t AllParameters(const models::LayerCount& layer) { return layer.parameters + layer.other_parameters; }

int64_t AllAttentionParameters(const models::Counts& counts) {
  int64_t sum = 0;
  for (const models::LayerCount& layer : counts.layers) {
    if (layer.attention) sum += AllParameters(layer);
  }
  return sum;
}

bool HasAttention(const models::Counts& counts) {
  return std::any_of(counts.layers.begin(), counts.layers.end(),
                     [](const models::LayerCount& layer) { return layer.attention; });
}

std::vector<std::string> SumRow(const std::string& name, int64_t whole, int64_t attention) {
  return {name, WithThousands(whole), WithThousands(attention), Percentage(attention, whole)};
}

// Prints one row per module, and their sum. Bytes are printed only for modules whose paper counts them.
void PrintAttention(Console& console, const models::Counts& counts) {
  const bool bytes = counts.AttentionBytes() > 0;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, int64_t parameters, int64_t madds, int64_t held) {
    rows.push_back({name, WithThousands(parameters), WithThousands(madds)});
    if (bytes) rows.back().push_back(WithThousands(held));
  };
  for (const models::LayerCount& layer : counts.layers) {
    if (layer.attention) add(layer.name, AllParameters(layer), layer.madds, layer.attention_bytes);
  }
  add("sum", AllAttentionParameters(counts), counts.AttentionMadds(), counts.AttentionBytes());
  std::vector<Column> columns = {{"ATTENTION"}, {"PARAMETERS", true}, {"MULTIPLY-ADDS", true}};
  if (bytes) columns.push_back({"BYTES", true});
  console.out << '\n';
  PrintTable(console, columns, rows);
}

void PrintText(Console& console, const models::Description& description, const models::Counts& counts,
               bool layers) {
  const std::string options = absl::StrJoin(description.options, " ", absl::PairFormatter("="));
  console.out << Paint(console, Tone::kStrong, Printable(description.architecture)) << "  "
              << models::TaskName(description.task) << "  " << Printable(options) << "  "
              << (description.input.views > 1 ? "2x " : "") << description.input.width << "x"
              << description.input.height << '\n';
  PrintTable(
      console, {{""}, {"TOTAL", true}, {"ATTENTION", true}, {"SHARE", true}},
      {SumRow("parameters, by the paper's counting", counts.Parameters(), counts.AttentionParameters()),
       SumRow("parameters in full", counts.AllParameters(), AllAttentionParameters(counts)),
       SumRow("multiply-adds a picture", counts.Madds(), counts.AttentionMadds())});
  if (HasAttention(counts)) PrintAttention(console, counts);
  if (!layers) return;
  std::vector<std::vector<std::string>> rows;
  for (const models::LayerCount& layer : counts.layers) {
    rows.push_back({layer.name, layer.operation, layer.attention ? "yes" : "",
                    WithThousands(layer.parameters), WithThousands(layer.other_parameters),
                    WithThousands(layer.madds)});
  }
  console.out << '\n';
  PrintTable(console,
             {{"LAYER"},
              {"OPERATION"},
              {"ATTENTION"},
              {"PARAMETERS", true},
              {"OTHERS", true},
              {"MULTIPLY-ADDS", true}},
             rows);
}

nlohmann::ordered_json AttentionModules(const models::Counts& counts) {
  nlohmann::ordered_json modules = nlohmann::ordered_json::array();
  for (const models::LayerCount& layer : counts.layers) {
    if (!layer.attention) continue;
    modules.push_back({{"name", layer.name},
                       {"parameters_in_full", AllParameters(layer)},
                       {"multiply_adds", layer.madds},
                       {"bytes", layer.attention_bytes}});
  }
  return modules;
}

void PrintJson(Console& console, const models::Description& description, const models::Counts& counts,
               bool layers) {
  nlohmann::ordered_json document = {
      {"version", 1},
      {"architecture", description.architecture},
      {"task", models::TaskName(description.task)},
      {"options", description.options},
      {"input", {{"width", description.input.width}, {"height", description.input.height}}},
      {"parameters", counts.Parameters()},
      {"parameters_in_full", counts.AllParameters()},
      {"multiply_adds", counts.Madds()},
      {"attention",
       {{"parameters", counts.AttentionParameters()},
        {"parameters_in_full", AllAttentionParameters(counts)},
        {"multiply_adds", counts.AttentionMadds()},
        {"bytes", counts.AttentionBytes()},
        {"parameters_ratio", Ratio(counts.AttentionParameters(), counts.Parameters())},
        {"multiply_adds_ratio", Ratio(counts.AttentionMadds(), counts.Madds())},
        {"modules", AttentionModules(counts)}}}};
  if (layers) {
    document["layers"] = nlohmann::ordered_json::array();
    for (const models::LayerCount& layer : counts.layers) {
      document["layers"].push_back({{"name", layer.name},
                                    {"operation", layer.operation},
                                    {"attention", layer.attention},
                                    {"parameters", layer.parameters},
                                    {"other_parameters", layer.other_parameters},
                                    {"multiply_adds", layer.madds}});
    }
  }
  console.out << Dump(document);
}

// Returns false after printing an error.
bool ReadOptions(const ParamsCommand& command, Console& console, models::Options& options) {
  for (const std::string& option : command.options) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos || equals == 0) {
      Complain(console, absl::StrCat("--option ", option, ": expected KEY=VALUE"));
      return false;
    }
    options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  return true;
}

}  // namespace

int RunParams(const ParamsCommand& command, Console& console) {
  models::Options options;
  if (!ReadOptions(command, console, options)) return kExitUsage;
  const std::vector<std::string> known = models::Architectures();
  if (std::find(known.begin(), known.end(), command.architecture) == known.end()) {
    Complain(console, absl::StrCat("there is no architecture '", command.architecture,
                                   "'; expected one of: ", absl::StrJoin(known, ", ")));
    return kExitUsage;
  }
  try {
    const models::Description description = models::Describe(command.architecture, options);
    const models::Counts counts = models::Count(command.architecture, options);
    if (command.format == Format::kJson) {
      PrintJson(console, description, counts, command.layers);
    } else {
      PrintText(console, description, counts, command.layers);
    }
  } catch (const models::LoadError& error) {
    Complain(console, error.what());
    return kExitUsage;
  }
  return Flush(console) ? kExitOk : kExitFailure;
}

}  // namespace saccade::client
