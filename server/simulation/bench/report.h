// The benchmark's report: measured figures, their targets, and whether each target was reached.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace saccade::server::simulation {

class Report {
 public:
  // Starts a section, to which later rows belong. `text` describes how they were measured.
  void Section(std::string title, std::string text);

  // Adds a row without a target.
  void Note(std::string what, std::string figure);

  void AtLeast(std::string what, double figure, double target, int digits = 3, const std::string& unit = "");
  void AtMost(std::string what, double figure, double target, int digits = 3, const std::string& unit = "");

  // Adds a plot, stored beside the report, below the section's table.
  void Plot(const std::string& title, const std::string& file);

  // The number of missed targets.
  int missed() const;

  std::string Markdown() const;

 private:
  struct Row {
    std::string what;
    std::string figure;
    std::string target;
    std::optional<bool> reached;
  };
  struct Part {
    std::string title;
    std::string text;
    std::vector<Row> rows;
    std::vector<std::string> plots;
  };

  void Add(Row row);

  std::vector<Part> parts_;
};

// `value` with `digits` decimal places.
std::string Rounded(double value, int digits);

}  // namespace saccade::server::simulation
