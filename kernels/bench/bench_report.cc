#include "kernels/bench/bench_report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

namespace saccade::kernels {
namespace {

template <typename... Arguments>
std::string Format(const char* format, Arguments... arguments) {
  char text[256];
  std::snprintf(text, sizeof(text), format, arguments...);
  return text;
}

// Three significant digits, never an exponent: 1.21, 33.9, 305. A value that would round to 1000 takes the
// next unit.
std::string WithUnit(double value, double unit, const std::vector<const char*>& units) {
  size_t i = 0;
  double scaled = value / unit;
  while (scaled >= 999.5 && i + 1 < units.size()) {
    scaled /= 1000;
    ++i;
  }
  const int decimals = scaled < 9.995 ? 2 : scaled < 99.95 ? 1 : 0;
  return Format("%.*f%s%s", decimals, scaled, *units[i] ? " " : "", units[i]);
}

std::string RatioText(double ratio) { return ratio == 0 ? "" : Format("%.2fx", ratio); }

std::string RateText(double madds, double seconds) {
  return madds == 0 ? "" : Format("%.1f", madds / seconds / 1e9);
}

// The peak as a multiple of the workspace that the algorithm needs.
std::string NeededText(double peak_bytes, double min) {
  return min == 0 ? "" : Format("%.2fx", peak_bytes / min);
}

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

void WriteJsonRow(const CaseResult& result, const CandidateResult& candidate, std::ostream& out) {
  out << "    {\"name\": " << Quoted(CaseName(result) + "/" + candidate.name)
      << ", \"run_type\": \"aggregate\", \"aggregate_name\": \"median\", \"repetitions\": " << result.rounds
      << ", \"real_time\": " << Format("%.9g", candidate.seconds * 1e3) << ", \"time_unit\": \"ms\""
      << ", \"ratio_to_saccade\": " << Format("%.6g", candidate.ratio)
      << ", \"madds\": " << Format("%.0f", result.madds)
      << ", \"peak_bytes\": " << Format("%.0f", candidate.peak_bytes)
      << ", \"min_workspace_bytes\": " << Format("%.0f", result.min_workspace_bytes)
      << ", \"min_bytes\": " << Format("%.0f", result.min_bytes)
      << ", \"copy_time\": " << Format("%.9g", result.copy_seconds * 1e3) << "}";
}

}  // namespace

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double MedianRatio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios(a.size());
  std::transform(a.begin(), a.end(), b.begin(), ratios.begin(), [](double x, double y) { return x / y; });
  return Median(std::move(ratios));
}

std::string CaseName(const CaseResult& result) {
  return result.op + "/" + result.variant + "/" + result.shape;
}

std::string SecondsText(double seconds) { return WithUnit(seconds, 1e-6, {"us", "ms", "s"}); }

std::string BytesText(double bytes) {
  return bytes < 1000 ? Format("%.0f B", bytes) : WithUnit(bytes, 1e3, {"kB", "MB", "GB", "TB"});
}

std::string CountText(double count) {
  return count < 1000 ? Format("%.0f", count) : WithUnit(count, 1e3, {"k", "M", "G", "T"});
}

void PrintCase(const CaseResult& result, std::ostream& out) {
  out << CaseName(result) << ": " << result.rounds << " rounds";
  if (result.madds > 0) out << ", " << CountText(result.madds) << " MAdds";
  if (result.copy_seconds > 0) {
    out << ", must move " << BytesText(result.min_bytes) << " (a copy: " << SecondsText(result.copy_seconds)
        << ")";
  }
  out << "\n";
  for (const CandidateResult& candidate : result.candidates) {
    out << Format("  %-16s %10s %8s %8s GMAdd/s %10s %8s\n", candidate.name.c_str(),
                  SecondsText(candidate.seconds).c_str(), RatioText(candidate.ratio).c_str(),
                  RateText(result.madds, candidate.seconds).c_str(), BytesText(candidate.peak_bytes).c_str(),
                  NeededText(candidate.peak_bytes, result.min_workspace_bytes).c_str());
  }
  out << std::flush;
}

void WriteMarkdown(const BenchContext& context, const std::vector<CaseResult>& results, std::ostream& out) {
  out << "# Kernels\n\n";
  for (const auto& [what, value] : context) out << "- " << what << ": " << value << "\n";
  std::string op;
  for (const CaseResult& result : results) {
    if (result.op != op) {
      op = result.op;
      out << "\n## " << op << "\n\n"
          << "| benchmark | time | to saccade | MAdds | GMAdd/s | peak | of needed | to a copy |\n"
          << "|---|---:|---:|---:|---:|---:|---:|---:|\n";
    }
    for (const CandidateResult& candidate : result.candidates) {
      out << "| " << CaseName(result) << "/" << candidate.name << " | " << SecondsText(candidate.seconds)
          << " | " << RatioText(candidate.ratio) << " | " << (result.madds > 0 ? CountText(result.madds) : "")
          << " | " << RateText(result.madds, candidate.seconds) << " | " << BytesText(candidate.peak_bytes)
          << " | " << NeededText(candidate.peak_bytes, result.min_workspace_bytes) << " | "
          << (result.copy_seconds > 0 ? RatioText(candidate.seconds / result.copy_seconds) : "") << " |\n";
    }
  }
}

void WriteJson(const BenchContext& context, const std::vector<CaseResult>& results, std::ostream& out) {
  out << "{\n  \"context\": {";
  for (size_t i = 0; i < context.size(); ++i) {
    out << (i ? ", " : "") << Quoted(context[i].first) << ": " << Quoted(context[i].second);
  }
  out << "},\n  \"benchmarks\": [\n";
  const char* separator = "";
  for (const CaseResult& result : results) {
    for (const CandidateResult& candidate : result.candidates) {
      out << separator;
      WriteJsonRow(result, candidate, out);
      separator = ",\n";
    }
  }
  out << "\n  ]\n}\n";
}

}  // namespace saccade::kernels
