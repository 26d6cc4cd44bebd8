#include "server/simulation/bench/report.h"

#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace saccade::server::simulation {

std::string Rounded(double value, int digits) { return absl::StrFormat("%.*f", digits, value); }

void Report::Section(std::string title, std::string text) {
  std::fprintf(stderr, "%s\n", title.c_str());
  parts_.push_back({.title = std::move(title), .text = std::move(text), .rows = {}, .plots = {}});
}

void Report::Add(Row row) {
  const char* const verdict = !row.reached ? "" : *row.reached ? "reached" : "MISSED";
  std::fprintf(stderr, "  %-72s %16s  %-12s %s\n", row.what.c_str(), row.figure.c_str(), row.target.c_str(),
               verdict);
  parts_.back().rows.push_back(std::move(row));
}

void Report::Note(std::string what, std::string figure) {
  Add({.what = std::move(what), .figure = std::move(figure), .target = "", .reached = std::nullopt});
}

void Report::AtLeast(std::string what, double figure, double target, int digits, const std::string& unit) {
  Add({.what = std::move(what),
       .figure = absl::StrCat(Rounded(figure, digits), unit),
       .target = absl::StrCat(">= ", target, unit),
       .reached = figure >= target});
}

void Report::AtMost(std::string what, double figure, double target, int digits, const std::string& unit) {
  Add({.what = std::move(what),
       .figure = absl::StrCat(Rounded(figure, digits), unit),
       .target = absl::StrCat("<= ", target, unit),
       .reached = figure <= target});
}

void Report::Plot(const std::string& title, const std::string& file) {
  parts_.back().plots.push_back(absl::StrCat("![", title, "](", file, ")"));
}

int Report::missed() const {
  int missed = 0;
  for (const Part& part : parts_) {
    for (const Row& row : part.rows) missed += row.reached.has_value() && !*row.reached;
  }
  return missed;
}

std::string Report::Markdown() const {
  std::string text;
  for (const Part& part : parts_) {
    absl::StrAppend(&text, "\n## ", part.title, "\n\n", part.text, "\n\n");
    absl::StrAppend(&text, "| what | figure | target | reached |\n|---|---:|---:|---|\n");
    for (const Row& row : part.rows) {
      const char* const reached = !row.reached ? "" : *row.reached ? "yes" : "**no**";
      absl::StrAppend(&text, "| ", row.what, " | ", row.figure, " | ", row.target, " | ", reached, " |\n");
    }
    for (const std::string& plot : part.plots) absl::StrAppend(&text, "\n", plot, "\n");
  }
  return text;
}

}  // namespace saccade::server::simulation
