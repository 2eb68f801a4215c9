#include "tests/bench/slower.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "tests/bench/timing.h"

namespace muster::bench {

namespace json = boost::json;

namespace {

std::map<std::string, std::vector<Arm>> read(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  std::stringstream text;
  text << in.rdbuf();
  std::map<std::string, std::vector<Arm>> tables;
  try {
    const json::value all = json::parse(text.str());
    for (const auto& table : all.as_object())
      for (const auto& arm : table.value().as_object()) {
        Arm one{std::string(arm.key()), ""};
        for (const auto& result : arm.value().as_array()) one.results.push_back(result.as_object());
        tables[std::string(table.key())].push_back(std::move(one));
      }
  } catch (const std::exception&) {
    throw std::runtime_error(file + " is no file that --json wrote");
  }
  return tables;
}

/// Rates by round in increasing order, divided by the machine's speed in that round if measured.
std::vector<double> rates(const std::vector<Arm>& arms, const Arm& arm, bool overMachine) {
  if (arm.median("ofMachine")) return arm.sorted("ofMachine");
  if (!overMachine) return arm.sorted("samplesPerSecond");
  return ratios(arm, "samplesPerSecond", find(arms, "machine, 1 thread"), "operationsPerSecond");
}

double medianRate(const Arm& arm) {
  return arm.median("callsPerSecond").value_or(arm.median("samplesPerSecond").value_or(0));
}

}  // namespace

OldMeasurements::OldMeasurements(const std::string& file) : tables_(read(file)) {}

std::vector<OldMeasurements::Change> OldMeasurements::changes(
    const std::map<std::string, std::vector<Arm>>& tables) const {
  std::vector<Change> all;
  for (const auto& [table, arms] : tables) {
    const auto old = tables_.find(table);
    if (old == tables_.end()) continue;
    const bool overMachine = has(arms, "machine, 1 thread") && has(old->second, "machine, 1 thread");
    for (const auto& arm : arms) {
      if (!has(old->second, arm.name)) continue;
      const Arm& before = find(old->second, arm.name);
      const auto was = rates(old->second, before, overMachine), is = rates(arms, arm, overMachine);
      if (was.empty() || is.empty()) continue;
      all.push_back({.table = table,
                     .arm = arm.name,
                     .before = medianRate(before),
                     .after = medianRate(arm),
                     .factor = medianOf(is) / medianOf(was),
                     .certain = is.back() < was.front() || is.front() > was.back()});
    }
  }
  return all;
}

void OldMeasurements::print(const std::map<std::string, std::vector<Arm>>& tables) const {
  auto all = changes(tables);
  if (all.empty()) {
    fmt::print("\nThe earlier measurements have none of these arms.\n");
    return;
  }
  std::ranges::stable_sort(all, {}, &Change::factor);
  std::size_t width = 0;
  for (const auto& change : all) width = std::max(width, change.arm.size());
  fmt::print(
      "\nBeside the earlier measurements, at the machine's pace; * where every round of one is faster than "
      "every round of the other\n\n{:<20} {:<{}} {:>11} {:>11} {:>9}\n",
      "", "", width, "before", "now", "speed");
  for (const auto& change : all)
    if (change.certain || change.table != "kernels")  // there are hundreds of kernels
      fmt::print("{:<20} {:<{}} {:>11.0f} {:>11.0f} {:>+7.1f} %{}\n", change.table, change.arm, width,
                 change.before, change.after, 100 * (change.factor - 1), change.certain ? " *" : "");
  const auto slower = std::ranges::count_if(all, [](const Change& c) { return c.certain && c.factor < 1; });
  fmt::print("\n{}\n", slower == 0   ? "Nothing is slower beyond the noise."
                       : slower == 1 ? "One arm is slower beyond the noise."
                                     : fmt::format("{} arms are slower beyond the noise.", slower));
}

}  // namespace muster::bench
